"""The answer to SUBMIT_JOB in a cluster, where the job may have to replace one of another server."""

from typing import TYPE_CHECKING

from geartrain.engine.interfaces import KeyWaiter
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import RESERVING
from geartrain.wire import periodic as wire

if TYPE_CHECKING:
    from geartrain.doors.periodic.connection import PeriodicConnection


class SubmissionAnswer(KeyWaiter):
    """Answers when the job is durable, here or at the server that has the job of that name."""

    __slots__ = ("_connection", "_handle", "_message_id")

    def __init__(self, connection: "PeriodicConnection", message_id: bytes, job: LiveJob) -> None:
        self._connection = connection
        self._message_id = message_id
        self._handle = job.handle
        connection.tick_loop.durability.call_when_durable(self._commit_ended)

    def _commit_ended(self, failed: bool) -> None:
        job = self._connection.engine.find(self._handle)
        if not failed and job is not None and job.state is RESERVING:  # it moves to the other server
            self._connection.engine.wait_for_key(job, self)
        else:
            self._answer(wire.UNKNOWN if failed else wire.SUCCESS)

    def key_taken(self, handle: bytes) -> None:
        """The other server has the job."""
        self._answer(wire.SUCCESS)

    def key_free(self) -> None:
        """It was ended meanwhile, and this server has the job; or nobody has, because it could not be reached."""
        job = self._connection.engine.find(self._handle)
        self._answer(wire.SUCCESS if job is not None and job.background else wire.UNKNOWN)

    def _answer(self, word: int) -> None:
        if not self._connection.closing:
            self._connection.answer(self._message_id, word)
