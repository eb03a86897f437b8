"""Stands between a program and a PostgreSQL, and cuts the connection at a message of the test's choice.

    with CuttingProxy(cluster.port) as proxy:
        proxy.cut_at(commit_answer)
        ...                            # a program that commits on proxy.url()
        proxy.wait_until_cut()

`commit` never reaches PostgreSQL then, and is rolled back. `commit_answer` never reaches the program: PostgreSQL has
committed. With `outlive=True` only the program's connection is cut: PostgreSQL's end stays open and has not got the
message yet, as if it was under way in the network; `release` lets it arrive. Messages can also be delayed, or held
until `resume`, in either direction. New connections are still accepted, unless the program is cut off.
"""

import collections
import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Self

from tests.support import postgres, process, serving
from tests.support.postgres_messages import Message, Reader, Side

PATIENCE = process.PATIENCE
SEEN = 1000

# On these PostgreSQL acts: Query, Execute and CopyDone. A Parse alone only prepares.
_DOING = frozenset({b"Q", b"E", b"c"})

Moment = Callable[[Message], bool]


def statement(text: str) -> Moment:
    """The program sends a statement with this in it."""
    return lambda message: text.upper() in message.statement


def commit(message: Message) -> bool:
    """The program sends COMMIT, or the rest of what PostgreSQL needs for it."""
    return message.commits


def commit_answer(message: Message) -> bool:
    """PostgreSQL has committed, and says so."""
    return message.tag == "COMMIT"


def copy_data(message: Message) -> bool:
    """The program sends the first rows of a COPY."""
    return message.side is Side.CLIENT and message.kind == b"d"


class Link:
    """One connection of a program, and the one to PostgreSQL behind it."""

    def __init__(self, near: socket.socket, far: socket.socket) -> None:
        self.sockets = {Side.CLIENT: near, Side.SERVER: far}
        self.readers = {side: Reader(side) for side in Side}
        self.outliving = False  # the program's end was cut, PostgreSQL's was not
        self.released = threading.Event()

    def cut(self, *sides: Side) -> None:
        for side in sides or tuple(Side):
            with contextlib.suppress(OSError):
                self.sockets[side].shutdown(socket.SHUT_RDWR)

    def read(self, side: Side) -> list[Message]:
        """The next complete messages of a side; none at its end."""
        while data := self.sockets[side].recv(65536):
            messages = list(self.readers[side].feed(data))
            if side is Side.CLIENT:  # before the question is passed on, so that its answer is recognized
                self.readers[Side.SERVER].questions += self.readers[Side.CLIENT].questions
                self.readers[Side.CLIENT].questions = 0
            if messages:
                return messages
        return []


class CuttingProxy:
    """Any number of connections. A cut is made once, on the first connection that sends the message."""

    def __init__(self, port: int) -> None:
        self.seen: collections.deque[Message] = collections.deque(maxlen=SEEN)  # the last ones, of all connections
        self._target = port
        self._listener = socket.create_server((serving.HOST, 0))
        self._changed = threading.Condition()
        self._moment: Moment | None = None
        self._outlive = False
        self._strike: Callable[[], None] | None = None  # None: cut
        self._armed = self._struck = 0  # times that a moment was waited for, and came
        self._links: list[Link] = []
        self._closed_for_new = False
        self._delays = dict.fromkeys(Side, 0.0)
        self._open = {side: threading.Event() for side in Side}
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def url(self, database: str = postgres.USER, **parameters: str) -> str:
        return postgres.url(database, f"{postgres.USER}@{serving.HOST}:{self.port}", parameters)

    def cut_at(self, moment: Moment, outlive: bool = False) -> None:
        """Cut instead of passing on the next message that the moment fits."""
        self._arm(moment, outlive, None)

    def stop_at(self, moment: Moment, strike: Callable[[], None]) -> None:
        """Before the next message that the moment fits is passed on, strike, and stop its side until `resume`."""
        self._arm(moment, False, strike)

    def wait_until_cut(self) -> None:
        """Return when the moment has come that `cut_at` or `stop_at` was told, and the cut or the stop is made."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._moment is None and self._struck == self._armed, PATIENCE)

    def wait_until_seen(self, moment: Moment) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: any(map(moment, self.seen)), PATIENCE), "never seen"

    def release(self) -> None:
        """Let the message that a cut has held back arrive at PostgreSQL, whose answers nobody hears."""
        for link in self._links:
            link.released.set()

    def cut_all(self) -> None:
        """Cut every connection; new ones are accepted."""
        with self._changed:
            links = list(self._links)
        for link in links:
            link.cut()

    def cut_off(self) -> None:
        """Cut every connection, and every new one too, until `restore`."""
        with self._changed:
            self._closed_for_new = True
        self.cut_all()

    def restore(self) -> None:
        with self._changed:
            self._closed_for_new = False

    def stop(self, *sides: Side) -> None:
        """Pass on nothing more of these sides, or of both, until `resume`; connections stay open."""
        for side in sides or tuple(Side):
            self._open[side].clear()

    def resume(self) -> None:
        for gate in self._open.values():
            gate.set()

    def delay(self, side: Side, seconds: float) -> None:
        """Pass on what this side sends so much later."""
        self._delays[side] = seconds

    def __enter__(self) -> Self:
        self.resume()
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join(PATIENCE)
        self.resume()
        self.release()
        self.cut_all()
        for thread in self._threads:
            thread.join(PATIENCE)
        for link in self._links:
            for end in link.sockets.values():
                end.close()
        self._listener.close()

    def _arm(self, moment: Moment, outlive: bool, strike: Callable[[], None] | None) -> None:
        with self._changed:
            self._moment, self._outlive, self._strike = moment, outlive, strike
            self._armed = self._struck + 1

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self._connect(near)

    def _connect(self, near: socket.socket) -> None:
        with self._changed:
            refused = self._closed_for_new
        try:
            far = None if refused else socket.create_connection((serving.HOST, self._target), PATIENCE)
        except OSError:  # PostgreSQL is down: the program is to see the same
            far = None
        if far is None:
            near.close()
            return
        far.settimeout(None)
        link = Link(near, far)
        with self._changed:
            self._links.append(link)
        for side in Side:
            thread = threading.Thread(target=self._pass_on, args=(link, side), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _pass_on(self, link: Link, side: Side) -> None:
        other = Side.SERVER if side is Side.CLIENT else Side.CLIENT
        with contextlib.suppress(OSError):
            while messages := link.read(side):
                self._note(messages)
                self._ended.wait(self._delays[side])
                for place, message in enumerate(messages):
                    if self._is_due(message) and self._is_lost(link, messages[place:]):
                        continue
                    self._open[side].wait()
                    if not link.outliving:
                        link.sockets[other].sendall(message.data)
        if not link.outliving:
            link.cut()

    def _note(self, messages: list[Message]) -> None:
        with self._changed:
            self.seen += messages
            self._changed.notify_all()

    def _is_due(self, message: Message) -> bool:
        with self._changed:
            if self._moment is None or not self._moment(message):
                return False
            self._moment = None
            return True

    def _is_lost(self, link: Link, messages: list[Message]) -> bool:
        """Do what was asked for at this moment; whether the first of these messages is not to be passed on."""
        if self._strike is None:
            self._cut(link, messages)
        else:
            self.stop(messages[0].side)
            self._strike()
        with self._changed:
            self._struck += 1
            self._changed.notify_all()
        if link.outliving:
            link.released.wait()
            link.sockets[Side.SERVER].sendall(b"".join(message.data for message in messages))
        return self._strike is None

    def _cut(self, link: Link, messages: list[Message]) -> None:
        """These messages are lost, or held back until `release`."""
        link.outliving = self._outlive
        if link.outliving:
            assert messages[0].side is Side.CLIENT, "what PostgreSQL says cannot outlive the connection"
            while not any(message.kind in _DOING for message in messages):
                messages += link.read(Side.CLIENT)
        link.cut(*([Side.CLIENT] if link.outliving else Side))
