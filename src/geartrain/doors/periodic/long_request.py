"""Requests that may concern a million jobs: they are carried out in steps, with other connections' turns between them.

The peer's next request waits until this one has ended. A request is carried out to its end even if its peer leaves.
"""

import time
from typing import TYPE_CHECKING, Final

from geartrain.engine.function_drop import FunctionDrop
from geartrain.errors import WireError
from geartrain.runtime.tick import Writer
from geartrain.wire import periodic as wire

if TYPE_CHECKING:
    from geartrain.doors.periodic.connection import PeriodicConnection

_JOBS_PER_STEP: Final = 64


class LongRequest(Writer):
    """A request, from its first step to its answer. The tick loop continues it in turn with suspended connections."""

    def __init__(self, connection: "PeriodicConnection", message_id: bytes) -> None:
        self.connection = connection
        self.message_id = message_id
        self.failed = False  # a part of it was refused, or could not be made durable

    def step(self) -> bool:
        """Do a part of it; return whether that was the last."""
        raise NotImplementedError

    def begin(self) -> None:
        """Carry it out as far as one turn goes, and the rest in later turns."""
        connection = self.connection
        if self._take_turn():
            connection.answer_durably(self.message_id, wire.UNKNOWN if self.failed else wire.SUCCESS)
        else:
            connection.blocked = True
            self._continue_later()

    def _take_turn(self) -> bool:
        ends = time.monotonic() + self.connection.door.limits.turn
        while not self.step():
            if time.monotonic() >= ends:
                return False
        return True

    def _continue_later(self) -> None:
        tick_loop = self.connection.tick_loop
        tick_loop.durability.call_when_durable(self._note_commit)
        tick_loop.continue_later(self)

    def continue_input(self) -> None:
        """Carry it out for one more turn, and answer at its end."""
        connection = self.connection
        connection.begin_tick()
        try:
            if not self._take_turn():
                self._continue_later()
                return
            connection.tick_loop.durability.call_when_durable(self._answer)
        except WireError as error:
            connection.refuse(error)
        except Exception:
            connection.handle_bug()
        connection.unblock()

    def _note_commit(self, failed: bool) -> None:
        self.failed = self.failed or failed

    def _answer(self, failed: bool) -> None:
        """Every change is durable, or some could not be made so."""
        self.connection.answer(self.message_id, wire.UNKNOWN if failed or self.failed else wire.SUCCESS)


class DropRequest(LongRequest):
    """DROP_FUNC."""

    def __init__(self, connection: "PeriodicConnection", message_id: bytes, function: bytes) -> None:
        super().__init__(connection, message_id)
        self._drop = FunctionDrop(connection.engine, function)

    def step(self) -> bool:
        return self._drop.step()


class LoadRequest(LongRequest):
    """LOAD. The jobs are read twice, so that a list that is cut off submits none of them."""

    def __init__(self, connection: "PeriodicConnection", message_id: bytes, arguments: wire.Arguments) -> None:
        super().__init__(connection, message_id)
        self._count = arguments.count()
        self._checked = arguments
        self._to_check = self._count
        self._jobs = arguments.copy()
        self._to_submit = self._count

    def step(self) -> bool:
        number = min(self._to_check, _JOBS_PER_STEP)
        if number:
            for _ in range(number):
                self._checked.job(alone=False)
            self._to_check -= number
            return False
        number = min(self._to_submit, _JOBS_PER_STEP)
        for _ in range(number):
            if not self.connection.submit(self._jobs.job(alone=False)):
                self.failed = True
        self._to_submit -= number
        return not self._to_submit
