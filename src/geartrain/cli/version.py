"""`geartrain version`: the version, and what it runs on."""

import platform
from typing import Annotated

import msgspec
import typer

import geartrain
from geartrain import compiled, eventloop


def version(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print the version, and the Python, event loop and core that it runs on."""
    facts = {
        "version": geartrain.__version__,
        "python": platform.python_version(),
        "loop": eventloop.best().name,
        "core": compiled.form(),
    }
    if json:
        print(msgspec.json.encode(facts).decode())
    else:
        print("geartrain {version} (Python {python}, {loop}, {core} core)".format(**facts))
        if compiled.is_fallback():
            print(f"WARNING: the core is not compiled, and several times slower; {compiled.ADVICE}")
