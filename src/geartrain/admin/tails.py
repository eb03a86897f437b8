"""Control jobs that never end by themselves: what happens to jobs, a JSON line each, as long as somebody listens."""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from geartrain import jsonbytes
from geartrain.admin.events import event_names
from geartrain.admin.service import Admin
from geartrain.admin.views import JobEvent
from geartrain.engine.deadlines import NEVER
from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Timer
from geartrain.engine.job import LiveJob
from geartrain.errors import AdminError

# A person cannot read more, and a server that does a hundred thousand jobs a second must not describe each.
_LINES_PER_SECOND: Final = 1000
_SECOND: Final = 1.0
MOST: Final = 100  # listeners

_encoder: Final = msgspec.json.Encoder()


class Tail:
    """One listener: its job, and what it wants to hear."""

    def __init__(self, job: LiveJob, function: bytes = b"", what: Sequence[str] = ()) -> None:
        self.job = job
        self.function = jsonbytes.encode(function) if function else ""
        self.what = event_names(what)
        self.lines = 0  # in this second
        self.missed = 0  # the same, beyond the bound

    def wants(self, event: JobEvent) -> bool:
        """Whether it asked for events like this one."""
        return (not self.function or event.function == self.function) and (not self.what or event.what in self.what)


class Tails(Timer):
    """All listeners. Once a second, while there are any, it is looked whether they are still there."""

    def __init__(self, engine: Engine, admin: Admin, finish: Callable[[LiveJob, bytes], None]) -> None:
        super().__init__()
        self._engine = engine
        self._admin = admin
        self._finish = finish
        self._tails: list[Tail] = []
        engine.timers.append(self)

    def add(self, tail: Tail) -> None:
        """One more."""
        if len(self._tails) >= MOST:
            raise AdminError("conflict", f"{MOST} listen already")
        if not self._tails:
            self._admin.subscribe(self._hear)
        self._tails = [*self._tails, tail]
        self.at = self._engine.now + _SECOND

    def end(self) -> None:
        """Let nobody listen any longer."""
        for tail in self._tails:
            self._drop(tail)

    def fire(self, now: float) -> None:
        """Tell what was left out, and forget those who are gone."""
        if not self._tails:
            self.at = NEVER
            return
        if now < self.at <= now + 2 * _SECOND:
            return
        self.at = now + _SECOND
        for tail in self._tails:
            missed, tail.lines, tail.missed = tail.missed, 0, 0
            if not tail.job.watchers:
                self._drop(tail)
            elif missed:
                self._engine.data(tail.job, _encoder.encode({"missed": missed}) + b"\n")

    def _hear(self, event: JobEvent) -> None:
        line = b""
        for tail in self._tails:
            if not tail.wants(event):
                continue
            if tail.lines >= _LINES_PER_SECOND:
                tail.missed += 1
                continue
            tail.lines += 1
            line = line or _encoder.encode(event) + b"\n"
            self._engine.data(tail.job, line)

    def _drop(self, tail: Tail) -> None:
        self._tails = [other for other in self._tails if other is not tail]
        if not self._tails:
            self._admin.unsubscribe(self._hear)
        self._finish(tail.job, b'{"answer":null}')
