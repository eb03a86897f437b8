"""The entry point of the `geartrain` command."""

import os
import sys
from collections.abc import Callable, Sequence

from geartrain.cli import exit_codes
from geartrain.errors import GeartrainError


def main() -> None:
    """Run the command. An error of ours is one line on stderr and an exit code from the table.

    A reader that closes the pipe, as in `geartrain jobs | head -1`, and Ctrl-C end the command without a traceback.
    """
    code: int | str | None
    try:
        code = exit_code(_verb(sys.argv))
        if sys.stdout is not None:  # some supervisors start programs without it
            sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes stdout again at exit, and would report the closed pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = exit_codes.FAILED
    except KeyboardInterrupt:
        code = exit_codes.INTERRUPTED
    sys.exit(code)


def exit_code(run: Callable[[], int | None]) -> int | str | None:
    """Run something, and turn the error that it raises into a line on stderr and an exit code."""
    try:
        return run()
    except SystemExit as exit:  # of the parser
        return exit.code
    except GeartrainError as error:
        print(f"geartrain: {error}", file=sys.stderr)
        return exit_codes.code_for(error)


def _verb(arguments: Sequence[str]) -> Callable[[], int]:
    """Choose the parser: gearmand's syntax applies to the verb `gearmand`, or if the program is called that."""
    if os.path.basename(arguments[0]) == "gearmand":
        return lambda: _gearmand(arguments[1:])
    if arguments[1:2] == ["gearmand"]:
        return lambda: _gearmand(arguments[2:])
    return _geartrain


def _geartrain() -> int:
    from geartrain.cli import command_line, parameters

    call = command_line.find(sys.argv[1:])
    if call is not None:
        try:
            call()
            return 0
        except parameters.UsageError:
            pass  # typer gets to the same mistake, and prints it with the usage of the verb
    from geartrain.cli import app

    return app.run()


def _gearmand(arguments: Sequence[str]) -> int:
    from geartrain.cli import gearmand

    return gearmand.run(arguments)
