"""The entry point of the `geartrain` command."""

import os
import sys
from collections.abc import Callable, Sequence

from geartrain.cli import exit_codes
from geartrain.errors import GeartrainError


def main() -> None:
    """Run the command. An error of ours is one line on stderr and an exit code from the table."""
    run = _verb(sys.argv)
    try:
        code = run()
    except GeartrainError as error:
        print(f"geartrain: {error}", file=sys.stderr)
        code = exit_codes.code_for(error)
    except KeyboardInterrupt:
        code = exit_codes.INTERRUPTED
    sys.exit(code)


def _verb(arguments: Sequence[str]) -> Callable[[], int]:
    """Choose the parser: gearmand's syntax applies to the verb `gearmand`, or if the program is called that."""
    if os.path.basename(arguments[0]) == "gearmand":
        return lambda: _gearmand(arguments[1:])
    if arguments[1:2] == ["gearmand"]:
        return lambda: _gearmand(arguments[2:])
    return _geartrain


def _geartrain() -> int:
    from geartrain.cli import app

    return app.run()


def _gearmand(arguments: Sequence[str]) -> int:
    from geartrain.cli import gearmand

    return gearmand.run(arguments)
