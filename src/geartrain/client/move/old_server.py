"""The server whose jobs are moved, seen by a worker that takes a counted number of jobs at a time.

The library's worker asks for jobs by itself and sleeps when there is none. Moving needs to know when nothing is left,
so this connection sends GRAB_JOB only when it is told to, and waits for every answer.
"""

import asyncio
from typing import Final, NamedTuple

from geartrain import address
from geartrain.client.credentials import credentials_for
from geartrain.client.job_events import Completed, Data, Event, Failed, Progressed, Warned
from geartrain.client.protocols.base import whole_numbers
from geartrain.client.protocols.connection import ServerConnection
from geartrain.client.protocols.gearman.authentication import Authentication
from geartrain.errors import ServerGoneError, WireError
from geartrain.wire import gearman as wire
from geartrain.wire import gearman_client

_GRAB: Final = wire.request(wire.GRAB_JOB_ALL)
# The fields of an assignment before the payload; gearmand uses the second packet for jobs without a reducer.
_ASSIGNMENTS: Final = {wire.JOB_ASSIGN_ALL: 4, wire.JOB_ASSIGN_UNIQ: 3}


class HeldJob(NamedTuple):
    """A job that the old server assigned to this connection, and takes back if the connection ends."""

    handle: bytes
    function: bytes
    unique: bytes
    reducer: bytes  # empty for nearly every job
    payload: bytes


class OldServer:
    """A worker's connection for one function."""

    def __init__(self, url: str, name: bytes, token: str) -> None:
        self.address = address.parse(url)
        self._name = name
        self._token = token
        self._connection = ServerConnection(self._received, self._broken)
        self._authentication = Authentication(self.address, self._connection)
        self._answers = gearman_client.AnswerReader()
        self._grabbed: list[HeldJob] = []
        self._expected = 0  # answers
        self._all_answered: asyncio.Future[None] | None = None
        self._error: Exception | None = None

    async def open(self, function: bytes = b"") -> None:
        """Connect, and offer the function; without one, the connection only has its name."""
        credentials = credentials_for(self.address, None, self._token)
        try:
            await self._connection.open(self.address, credentials.tls)
            await self._authentication.perform(credentials.token)
            self._connection.write(wire.request(wire.SET_CLIENT_ID, self._name))
            if function:
                self._connection.write(wire.request(wire.CAN_DO, function))
            await self.settle()
        except OSError as error:
            raise ServerGoneError(f"cannot reach {self.address}: {error.strerror or error}") from None

    async def grab(self, count: int) -> list[HeldJob]:
        """Up to so many jobs; none if the server has none to give now."""
        self._grabbed = []
        self._connection.write(_GRAB * count)
        await self._answered(count)
        return self._grabbed

    def report(self, job: HeldJob, event: Event) -> None:
        """Report progress, data or the end of a job."""
        self._connection.write(_packet(job.handle, event))

    async def settle(self) -> None:
        """Return when the server has handled everything that was sent."""
        self._connection.write(wire.request(wire.ECHO_REQ, b"geartrain"))
        await self._answered(1)

    async def close(self) -> None:
        """Close the connection; the server gives the jobs that were not completed to others."""
        await self._connection.close()

    async def _answered(self, count: int) -> None:
        if self._error is not None:
            raise self._error
        self._expected = count
        self._all_answered = asyncio.get_running_loop().create_future()
        await self._all_answered

    def _received(self, data: bytes) -> None:
        answers = self._answers
        answers.feed(data)
        while (kind := answers.next()) >= 0:
            body = answers.data[answers.start : answers.end]
            if kind in _ASSIGNMENTS:
                self._assigned(_ASSIGNMENTS[kind], body)
            elif self._authentication.pending:
                self._authentication.received(body)
            elif kind == wire.ERROR:
                raise WireError(
                    "REFUSED", f"{self.address} refused: {body.replace(bytes(1), b' ').decode(errors='replace')}"
                )
            elif kind in (wire.NO_JOB, wire.ECHO_RES):
                self._count_answer()

    def _assigned(self, fields: int, body: bytes) -> None:
        values = body.split(b"\0", fields)
        if len(values) <= fields:
            raise WireError("INVALID_PACKET", f"{self.address} sent an invalid assignment")
        handle, function, unique, *reducer, payload = values
        self._grabbed.append(HeldJob(handle, function, unique, b"".join(reducer), payload))
        self._count_answer()

    def _count_answer(self) -> None:
        self._expected -= 1
        if not self._expected and self._all_answered is not None and not self._all_answered.done():
            self._all_answered.set_result(None)

    def _broken(self, error: Exception) -> None:
        if not isinstance(error, WireError):
            error = ServerGoneError(f"{self.address}: {error}")
        self._error = error
        if self._all_answered is not None and not self._all_answered.done():
            self._all_answered.set_exception(error)


def _packet(handle: bytes, event: Event) -> bytes:
    match event:
        case Completed(result):
            return gearman_client.about_job(wire.WORK_COMPLETE, handle, result)
        case Failed(data=data):
            if data:
                return gearman_client.about_job(wire.WORK_EXCEPTION, handle, data)
            return wire.request(wire.WORK_FAIL, handle)
        case Progressed(numerator, denominator):
            return gearman_client.about_job(wire.WORK_STATUS, handle, b"%d\0%d" % whole_numbers(numerator, denominator))
        case Data(data):
            return gearman_client.about_job(wire.WORK_DATA, handle, data)
        case Warned(data):
            return gearman_client.about_job(wire.WORK_WARNING, handle, data)
