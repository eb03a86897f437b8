"""Stands between a program and a Redis, and strikes between two commands.

    with RedisProxy(redis.port) as proxy:
        proxy.strike_after(3, lambda: os.kill(pid, signal.SIGKILL))

The strike comes when Redis has carried out a command and the program does not know it yet: this is where a program that
dies leaves Redis in a state of its own. From then on nothing passes.
"""

import collections
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

from geartrain.client.redis import scripts
from geartrain.wire import resp, resp_client
from tests.support import process, serving

PATIENCE = process.PATIENCE
# What is said when a connection is made says nothing about jobs.
_GREETINGS = frozenset({"SELECT", "HELLO", "CLIENT ID", "CLIENT SETINFO", "CLIENT MAINT_NOTIFICATIONS"})
_SCRIPTS = {
    script.sha1.encode(): f"EVALSHA {name}"
    for name, script in vars(scripts).items()
    if isinstance(script, scripts.Script)
}
REGISTER = _SCRIPTS[scripts.REGISTER.sha1.encode()]
# A worker runs these three times per lease, at any moment.
RENEWALS = frozenset(_SCRIPTS[script.sha1.encode()] for script in (scripts.REGISTER, scripts.HOLD, scripts.RETURN_LOST))


class RedisProxy:
    """Any number of connections; what it counts, it counts over all of them."""

    def __init__(self, port: int) -> None:
        self.answered: list[str] = []  # names of the commands that Redis has answered, without greetings
        self.round_trips = 0  # how often a program has sent commands while it waited for no reply on that connection
        self._asked: collections.Counter[str] = collections.Counter()
        self._target = port
        self._listener = socket.create_server((serving.HOST, 0))
        self._changed = threading.Condition()
        self._strike: Callable[[], None] | None = None
        self._armed_at = 0  # how many answers came before a strike was asked for
        self._strike_after = -1
        self._strike_on = ""
        self._count_renewals = True
        self.struck = False
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    @property
    def url(self) -> str:
        return f"gearmonkey://{serving.HOST}:{self._listener.getsockname()[1]}/0"

    def strike_after(self, more_answers: int, strike: Callable[[], None], count_renewals: bool = True) -> None:
        """Strike instead of passing on the answer that comes after this many more, with or without renewals."""
        with self._changed:
            self._count_renewals = count_renewals
            self._strike_after = len(self.answered) + more_answers
            self._arm(strike)

    def strike_on(self, name: str, strike: Callable[[], None]) -> None:
        """Strike instead of passing on the next answer to this command."""
        with self._changed:
            self._strike_on = name
            self._arm(strike)

    def answered_since_armed(self) -> set[str]:
        """The commands that were answered after a strike was asked for, the struck one included."""
        with self._changed:
            return set(self.answered[self._armed_at :])

    def wait_until_struck(self) -> str:
        """The command whose answer never arrived."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.struck, PATIENCE), f"only answered: {self.answered}"
            return self.answered[-1]

    def wait_until_asked(self, name: str, count: int) -> None:
        """Wait for so many commands of a name."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._asked[name] >= count, PATIENCE), f"asked: {self._asked}"

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for open_socket in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                open_socket.shutdown(socket.SHUT_RDWR)
        for thread in list(self._threads):
            thread.join(PATIENCE)
        for open_socket in (self._listener, *self._sockets):
            open_socket.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection((serving.HOST, self._target), PATIENCE)
                far.settimeout(None)
                self._sockets += [near, far]
                under_way: collections.deque[str] = collections.deque()
                for talk in (self._ask, self._answer):
                    thread = threading.Thread(target=talk, args=(near, far, under_way), daemon=True)
                    self._threads.append(thread)
                    thread.start()

    def _ask(self, near: socket.socket, far: socket.socket, under_way: collections.deque[str]) -> None:
        reader = resp.Reader(1024 * 1024)
        with contextlib.suppress(OSError):
            while data := near.recv(65536):
                with self._changed:
                    self.round_trips += not under_way
                reader.feed(data)
                while reader.next() == resp.COMMAND:
                    self._note(_name(reader.arguments), under_way)
                far.sendall(data)
            far.shutdown(socket.SHUT_WR)

    def _note(self, name: str, under_way: collections.deque[str]) -> None:
        with self._changed:
            under_way.append(name)
            self._asked[name] += 1
            self._changed.notify_all()

    def _answer(self, near: socket.socket, far: socket.socket, under_way: collections.deque[str]) -> None:
        answers = resp_client.ReplyReader()
        with contextlib.suppress(OSError):
            while data := far.recv(65536):
                answers.feed(data)
                with self._changed:
                    while answers.next() is not resp_client.MORE:
                        self._count(under_way.popleft())
                    if not self.struck:
                        near.sendall(data)
            near.shutdown(socket.SHUT_WR)

    def _count(self, name: str) -> None:
        if name in _GREETINGS or self.struck or (name in RENEWALS and not self._count_renewals):
            return
        self.answered.append(name)
        if self._strike is not None and self._is_due(name):
            self.struck = True
            self._strike()
        self._changed.notify_all()

    def _arm(self, strike: Callable[[], None]) -> None:
        self._armed_at = len(self.answered)
        self._strike = strike

    def _is_due(self, name: str) -> bool:
        return name == self._strike_on if self._strike_on else len(self.answered) > self._strike_after


def _name(arguments: list[bytes]) -> str:
    """A command, with the subcommand or the script that it names."""
    if arguments[0].upper() == b"EVALSHA":
        return _SCRIPTS[arguments[1]]
    words = arguments[: 2 if arguments[0].upper() in (b"CLIENT", b"SCRIPT") else 1]
    return b" ".join(words).decode().upper()


@contextlib.contextmanager
def cut_after(port: int, word: bytes) -> Iterator[int]:
    """A place on the way to a server where the line is cut, once, when a command has passed and before its answer."""
    listener = socket.create_server((serving.HOST, 0))
    cut = threading.Event()
    threads: list[threading.Thread] = []

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection((serving.HOST, port), 10)
                talk = threading.Thread(target=converse, args=(near, far))
                threads.append(talk)
                talk.start()

    def converse(near: socket.socket, far: socket.socket) -> None:
        """One exchange after the other, so that the answer to be thrown away is not relayed by another thread."""
        with contextlib.suppress(OSError), near, far:
            while data := near.recv(65536):
                far.sendall(data)
                answer = far.recv(65536)
                if word in data and not cut.is_set():
                    cut.set()
                    return
                near.sendall(answer)

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for thread in (accepting, *threads):
            thread.join(10)
