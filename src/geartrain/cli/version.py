"""`geartrain version`: the version, and what it runs on."""

import platform
from typing import Annotated

import geartrain
from geartrain import compiled, eventloop
from geartrain.cli import tables
from geartrain.cli.parameters import option


def version(
    json: Annotated[bool, option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print the version, and the Python, event loop and core that it runs on."""
    facts = {
        "version": geartrain.__version__,
        "python": platform.python_version(),
        "loop": eventloop.best().name,
        "core": compiled.form(),
    }
    if json:
        print(tables.json_line(facts))
    else:
        print("geartrain {version} (Python {python}, {loop}, {core} core)".format(**facts))
        if compiled.is_fallback():
            print(f"WARNING: the core is not compiled, and several times slower; {compiled.ADVICE}")
