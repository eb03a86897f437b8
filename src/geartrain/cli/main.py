"""`geartrain`: one command, one file per verb."""

import os
import sys
from collections.abc import Callable, Sequence

from geartrain.cli import exit_codes
from geartrain.errors import GeartrainError


def main() -> None:
    """The installed command. What goes wrong on our side is one line on stderr and an exit code of its own."""
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
    """gearmand's command line has rules of its own; it is also followed when a link of that name is called."""
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
