"""A library's client or worker as a running process, spoken to in the words of peers/contract.py."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from tests.interop import libraries
from tests.support import process, serving
from tests.support.gearman_peer import Peer


def told(line: str) -> str:
    """`complete\\t6f6b` is what a script prints; `complete ok` is what a test compares.

    >>> told("complete\\t6f6b")
    'complete ok'
    """
    event, _, data = line.partition("\t")
    return f"{event} {bytes.fromhex(data).decode('latin-1')}".rstrip(" ")


class Client(process.Process):
    """A client that submits or asks, tells what it hears, and ends."""

    def __init__(self, library: libraries.Library, port: int, order: Sequence[str], home: Path) -> None:
        super().__init__([*library.client, serving.HOST, str(port), *order], home, stdin=True)

    def heard(self) -> list[str]:
        """Everything it heard, once it has ended."""
        if self.wait() != 0:
            raise AssertionError(f"the client fell over\n{self.account()}")
        return [told(line) for line in self.lines]

    def handle(self) -> str:
        """Of the background job that it submitted."""
        [line] = self.heard()
        event, _, handle = line.partition(" ")
        assert event == "created", line
        return handle


class Worker(process.Process):
    """A worker that offers the functions of the contract under its prefix."""

    def __init__(self, library: libraries.Library, port: int, prefix: str, home: Path) -> None:
        self.library = library
        super().__init__(libraries.worker_command(library, serving.HOST, port, prefix), home, stdin=True)

    def wait_until_ready(self) -> None:
        if self.library is not libraries.GEARMAN:  # which says nothing; its jobs wait for it on the server
            self.wait_for_line("ready\t")

    def wait_for_gate(self, payload: bytes) -> None:
        """Return once the job with this payload runs at the gate."""
        self.wait_for_line(f"running\t{payload.hex()}")

    def open_gate(self) -> None:
        self.write(b"\n")


# What the fixtures of these tests hand to a test.
Spawn = Callable[..., process.Process]
Hire = Callable[[libraries.Library, str], Worker]
Ask = Callable[..., Client]
Dial = Callable[[], Peer]
Start = Callable[..., AbstractContextManager[serving.ServerProcess]]
