"""What every peer script here says and hears, so that the tests need not know whose library it uses.

A client script is called with `host port verb function unique priority`, the payload on its stdin:

    run          submit one foreground job, tell what is heard about it, end with it
    background   submit one background job
    batch        submit one foreground job per line of the payload, all at once; tell the results in that order
    status       ask about the handle that stands in the place of the function

A worker script is called with `host port prefix`, offers the functions `prefix-reverse`, `prefix-empty`,
`prefix-unique`, `prefix-report`, `prefix-fail`, `prefix-die` and `prefix-gate` as far as its library can, and
says `ready`. The gate tells that it runs and ends when a line comes on stdin.

What is told is a line each: an event's name, a tab, its data in hexadecimal.
"""

import sys
from typing import NamedTuple


class Order(NamedTuple):
    """A client script's command line and payload."""

    host: str
    port: int
    verb: str
    function: str  # or the handle to ask about
    unique: str  # empty: none
    priority: str  # high, normal or low
    payload: bytes


def order() -> Order:
    host, port, verb, function, unique, priority = sys.argv[1:]
    return Order(host, int(port), verb, function, unique, priority, sys.stdin.buffer.read())


def tell(event: str, data: bytes | str = b"") -> None:
    data = data.encode() if isinstance(data, str) else data
    sys.stdout.write(f"{event}\t{data.hex()}\n")  # at once: callbacks of libraries run in threads
    sys.stdout.flush()


def tell_status(known: object, running: object, numerator: object, denominator: object) -> None:
    tell("status", f"{int(bool(known))} {int(bool(running))} {int(str(numerator))}/{int(str(denominator))}")


def wait_at_gate(payload: bytes | str) -> None:
    tell("running", payload)
    sys.stdin.readline()
