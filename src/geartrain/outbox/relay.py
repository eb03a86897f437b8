"""The relay: it moves jobs from an outbox to a server.

A row is deleted after the server has acknowledged its job, so a job is submitted at least once. A row that was about to
be sent when a relay or a server died is in doubt. Its job has a unique key that no other job has: if the server knows a
job with that key, it was sent, whether it waits, runs or has ended; if not, it is sent now.

Rows are sent in the order of their ids, one batch after the other. A batch is not claimed before the server answers, so
that rows are in doubt only if a connection broke while they were on their way.
"""

import asyncio
import logging
import ssl
from collections.abc import Coroutine, Sequence
from types import TracebackType
from typing import Any, Final, Self

from geartrain import address, jsonbytes
from geartrain.backoff import Backoff, ReconnectDelay
from geartrain.client import arguments, control
from geartrain.client.async_client import AsyncClient
from geartrain.client.protocols import registry
from geartrain.errors import (
    AdminError,
    AuthenticationError,
    ClientError,
    RefusedError,
    ServerGoneError,
    UncertainError,
    UnsupportedError,
)
from geartrain.outbox.source import BatchLimits, OutboxError, RefusedRow, source_of
from geartrain.outbox.table import OutboxRow

BATCH: Final = 500  # rows
_BATCH_BYTES: Final = 8 * 1024 * 1024
POLL_SECONDS: Final = 5.0  # where no notification arrives, and for rows that are to be tried again
_PATIENCE: Final = 5.0  # seconds that a call waits for a server
_REFUSED: Final = Backoff(base=1.0, cap=60.0, jitter=False)
_OFFLINE: Final = (ServerGoneError, UncertainError, OSError)  # the next attempt may succeed, with the same rows

_log = logging.getLogger("geartrain.outbox")


class Relay:
    """Moves jobs from the outbox in a database to a server, until it is stopped.

        async with Relay("postgresql://app@localhost/shop", "gearman://127.0.0.1:4730"):
            ...  # it runs in the background

    Several relays of one database share the work. `servers` are the URLs of one server, or of servers that share a
    store. `batch` is the number of rows that are sent at a time.
    """

    def __init__(
        self,
        database: str,
        *servers: str,
        batch: int = BATCH,
        poll: float = POLL_SECONDS,
        tls: ssl.SSLContext | None = None,
        token: str | None = None,
    ) -> None:
        self._source = source_of(database)
        self._client = AsyncClient(*servers, patience=_PATIENCE, tls=tls, token=token)
        self._protocol = registry.client_class(address.parse(servers[0]))
        self._limits = BatchLimits(batch, _BATCH_BYTES)
        self._poll = poll
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None  # of `async with`
        self.moved = 0  # rows, since the start

    async def run(self) -> None:
        """Move rows as they appear, until `stop`. A database or a server that is away is waited for.

        An OutboxError is raised if the database cannot be used at the start, and an AuthenticationError whenever the
        server does not accept the token.
        """
        try:
            await self._source.open()
            await self._source.counts()
            await self._run()
        finally:
            await self.close()

    async def drain(self) -> int:
        """Move what is in the outbox now, and return the number of rows that were moved."""
        await self._source.open()
        before = self.moved
        while await self._move_batch():
            pass
        return self.moved - before

    def stop(self) -> None:
        """Finish the batch that is on its way, then let `run` return."""
        self._stopping.set()

    async def close(self) -> None:
        """Close the connections to the database and to the server."""
        await self._client.close()
        await self._source.close()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self.run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        delay = ReconnectDelay()
        while not self._stopping.is_set():
            try:
                await self._source.open()
                claimed = await self._move_batch()
                delay.reset()
                if not claimed:
                    await self._unless_stopped(self._source.changed(self._poll))
            except (OutboxError, *_OFFLINE) as error:
                seconds = delay.next()
                _log.warning("outbox waits %.1f seconds: %s", seconds, error)
                if isinstance(error, OutboxError):
                    await self._source.close()
                await self._unless_stopped(asyncio.sleep(seconds))

    async def _unless_stopped(self, waiting: Coroutine[Any, Any, None]) -> None:
        """Wait for something, or for `stop`."""
        tasks: list[asyncio.Task[Any]] = [asyncio.create_task(waiting), asyncio.create_task(self._stopping.wait())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if tasks[0] in done:
            tasks[0].result()

    async def _move_batch(self) -> int:
        """Move the next batch; the number of rows in it, whether they were moved or refused."""
        await self._client.connect()
        async with self._source.claim(self._limits) as claimed:
            if not claimed.rows:
                return 0
            outcomes = await self._send(claimed.rows)
            moved = [row.id for row, error in outcomes if error is None]
            refused = [self._refusal(row, error) for row, error in outcomes if _is_refusal(error)]
            await claimed.settle(moved, refused)
        self.moved += len(moved)
        for _, error in outcomes:
            if error is not None and not _is_refusal(error):
                raise error
        return len(claimed.rows)

    async def _send(self, rows: Sequence[OutboxRow]) -> list[tuple[OutboxRow, Exception | None]]:
        """Send these rows; for each, why that failed, or None."""
        outcomes: dict[int, Exception | None] = {}
        sending: list[OutboxRow] = []
        for row in rows:
            try:
                arguments.check(row.order, self._protocol, self._client.protocol)
                if row.in_doubt and row.own_key and await self._is_known(row):
                    outcomes[row.id] = None
                else:
                    sending.append(row)
            except UnsupportedError as error:
                outcomes[row.id] = error
        # A job whose acknowledgement was lost must not be sent again before the server was asked for it.
        orders = [row.order for row in sending]
        results = await self._client.submit_many(orders, resubmit=None, return_exceptions=True)
        for row, result in zip(sending, results, strict=True):
            outcomes[row.id] = result if isinstance(result, Exception) else None
        return [(row, outcomes[row.id]) for row in rows]

    async def _is_known(self, row: OutboxRow) -> bool:
        """Whether the server has the job of a row, or has had it."""
        function, unique = jsonbytes.encode(row.order.function), jsonbytes.encode(row.order.unique)
        try:
            await control.ask(self._client, "find", function=function, unique=unique)
        except AdminError as error:
            if error.kind != "not-found":
                raise ServerGoneError(f"the server cannot tell whether it has a job: {error.text}") from error
            return False
        return True

    @staticmethod
    def _refusal(row: OutboxRow, error: Exception | None) -> RefusedRow:
        delay = _REFUSED.after(row.refusals + 1)
        function = row.order.function.decode("utf-8", "replace")
        _log.warning("outbox row %d of %s refused, next attempt in %.0f seconds: %s", row.id, function, delay, error)
        return RefusedRow(row.id, str(error), delay)


def _is_refusal(error: Exception | None) -> bool:
    """Whether a server that answers does not take a job; others may still be taken."""
    if isinstance(error, AuthenticationError | ServerGoneError | UncertainError):
        return False
    return isinstance(error, RefusedError | UnsupportedError | ClientError)
