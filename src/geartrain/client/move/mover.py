"""Moves jobs from a running Gearman server to another server: a worker there, a client here.

A background job is submitted to the new server, and completed at the old one only when the new one has acknowledged it.
So whatever happens to this process, each job is at one of the two; at worst it is at both, and runs twice. A foreground
job stays at the old server, where its client waits, and the workers of the new one run it: events and result are passed
on.
"""

import asyncio
import contextlib
import dataclasses
import os
import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from geartrain import address
from geartrain.client import gearmand
from geartrain.client.async_client import AsyncClient
from geartrain.client.job_events import Completed
from geartrain.client.move.old_server import HeldJob, OldServer
from geartrain.errors import ClientError, RefusedError
from geartrain.model import Priority

# How many jobs are under way: the number doubles up to this while their payloads are small.
_MOST_JOBS: Final = 256
_MOST_BYTES: Final = 8 * 1024 * 1024
_FOLLOW_SECONDS: Final = 1.0

PriorityCounts = tuple[int, int, int]


@dataclasses.dataclass
class MoveSummary:
    """What was moved."""

    moved: int = 0  # background jobs that are at the new server now
    passed_on: int = 0  # foreground jobs that the new server's workers ran for clients of the old one
    left: int = 0  # jobs that are still at the old server: not due, or run by its own workers
    with_reducer: int = 0  # of these, jobs with a reducer, which only Gearman's own packets can express


class Mover:
    """Moves jobs of some functions, or of all. `progress` is called with the number of jobs moved so far.

    The token of the environment is the new server's: gearmand has none, and another Geartrain has its own.
    """

    def __init__(
        self, old: str, client: AsyncClient, progress: Callable[[int], None] = lambda _: None, old_token: str = ""
    ) -> None:
        self._old = old
        self._old_token = old_token
        self._client = client
        self._progress = progress
        self._name = f"geartrain-move-{os.getpid()}-{secrets.token_hex(4)}".encode()
        self._is_background: dict[bytes, bool] = {}  # by handle, as the old server last listed its jobs
        self._connections: set[asyncio.Task[None]] = set()  # that foreground jobs still need
        self._stopped = asyncio.Event()
        self.summary = MoveSummary()

    async def run(self, functions: Sequence[str] = (), follow: bool = False) -> MoveSummary:
        """Move what is there, and return; with `follow`, go on with what is submitted or becomes due, until stopped.

        A job that the new server refuses stays at the old one, and ends the move with the error.
        """
        await self._require_two_servers()
        try:
            while True:
                for function in await self._with_jobs(functions):
                    await self._drain(function)
                    self._check_connections()
                if not follow or self._stopped.is_set():
                    break
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopped.wait(), _FOLLOW_SECONDS)
            if not self._stopped.is_set():
                await asyncio.gather(*self._connections)
        finally:
            for connection in self._connections:
                connection.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)
        self.summary.left = sum((await self._totals(functions)).values())
        return self.summary

    def stop(self) -> None:
        """Finish the jobs that are under way, and let `run` return. Foreground jobs go back to the old server."""
        self._stopped.set()

    async def _require_two_servers(self) -> None:
        """Refuse to move jobs of a server to itself, whatever its names are: that would never end."""
        old = OldServer(self._old, self._name, self._old_token)
        await old.open()
        try:
            new = str((await self._client.connection()).address)
            if address.parse(new).scheme == "gearman" and self._name in await gearmand.ask(new, "workers"):
                raise ClientError(f"{self._old} and {new} are the same server; name two servers")
        finally:
            await old.close()

    async def _totals(self, functions: Sequence[str]) -> dict[bytes, int]:
        """How many jobs the old server has, of these functions or of all."""
        totals = {}
        for line in _lines(await self._ask_old("status")):
            name, total, _, _ = line.rsplit(b"\t", 3)
            totals[name] = int(total)
        return {name: totals.get(name, 0) for name in map(str.encode, functions)} if functions else totals

    async def _with_jobs(self, functions: Sequence[str]) -> list[bytes]:
        return [name for name, total in (await self._totals(functions)).items() if total]

    async def _drain(self, function: bytes) -> None:
        """Take the jobs of a function until the old server has none to give.

        Each function has a connection of its own, so that the order of the jobs shows their priorities.
        """
        old = OldServer(self._old, self._name, self._old_token)
        await old.open(function)
        relays: list[asyncio.Task[None]] = []
        try:
            size = 1
            before = await self._waiting(function)
            while not self._stopped.is_set() and (jobs := await old.grab(size)):
                after = await self._waiting(function)
                await self._move(old, jobs, _priorities(before, after, len(jobs)), relays)
                before = after
                small = sum(len(job.payload) for job in jobs) < _MOST_BYTES
                size = min(size * 2, _MOST_JOBS) if small else max(size // 2, 1)
            await old.settle()
        finally:
            self._connections.add(asyncio.create_task(_close_after(old, relays)))

    def _check_connections(self) -> None:
        """Raise the error of a foreground job that could not be passed on."""
        for connection in [connection for connection in self._connections if connection.done()]:
            self._connections.discard(connection)
            connection.result()

    async def _move(
        self, old: OldServer, jobs: list[HeldJob], priorities: list[Priority], relays: list[asyncio.Task[None]]
    ) -> None:
        """Move background jobs; start passing on foreground jobs, whose tasks are added to `relays`."""
        if any(job.handle not in self._is_background for job in jobs):
            await self._list_jobs()
        moving, orders = [], []
        for job, priority in zip(jobs, priorities, strict=True):
            if job.reducer:
                self.summary.with_reducer += 1
            elif self._is_background.pop(job.handle, False):
                moving.append(job)
                orders.append(
                    self._client.order(job.function, job.payload, background=True, priority=priority, unique=job.unique)
                )
            else:
                relays.append(asyncio.create_task(self._pass_on(old, job, priority)))
        results = await self._client.submit_many(orders, return_exceptions=True)
        for job, result in zip(moving, results, strict=True):
            if not isinstance(result, Exception):
                old.report(job, Completed(b""))
                self.summary.moved += 1
        self._progress(self.summary.moved)
        await self._raise_first(old, results)

    async def _raise_first(self, old: OldServer, results: Iterable[object]) -> None:
        """Raise the first error, when the old server knows which jobs were moved."""
        for error in results:
            if isinstance(error, Exception):
                await old.settle()
                raise error

    async def _pass_on(self, old: OldServer, job: HeldJob, priority: Priority) -> None:
        """Run a foreground job at the new server, for the client that waits at the old one."""
        submitted = await self._client.submit(job.function, job.payload, priority=priority, unique=job.unique)
        async for event in submitted.events():
            old.report(job, event)
        self.summary.passed_on += 1

    async def _ask_old(self, command: str) -> bytes:
        return await gearmand.ask(self._old, command, self._old_token)

    async def _list_jobs(self) -> None:
        """List all jobs: the fourth column of `show jobs` is 1 for background jobs."""
        answer = await self._ask_old("show jobs")
        if answer.startswith(b"ERR"):
            raise RefusedError(
                f"{self._old} does not know `show jobs` or does not allow it, so foreground jobs cannot be told from "
                "background jobs; nothing more is moved"
            )
        fields = (line.rsplit(b"\t", 3) for line in _lines(answer))
        self._is_background = {handle: background == b"1" for handle, _, _, background in fields}

    async def _waiting(self, function: bytes) -> PriorityCounts:
        """How many jobs of each priority wait at the old server; zeros if it cannot say."""
        for line in _lines(await self._ask_old("prioritystatus")):
            name, *counts = line.rsplit(b"\t", 4)
            if name == function:
                high, normal, low, _ = map(int, counts)
                return high, normal, low
        return 0, 0, 0


async def _close_after(old: OldServer, relays: list[asyncio.Task[None]]) -> None:
    """Close the connection when the foreground jobs that it holds have ended."""
    try:
        await asyncio.gather(*relays)
        if relays:
            await old.settle()
    finally:
        for relay in relays:
            relay.cancel()
        await old.close()


def _priorities(before: PriorityCounts, after: PriorityCounts, count: int) -> list[Priority]:
    """The priorities of jobs that were taken, from what waited before and after.

    A server gives high before normal before low. If jobs were submitted meanwhile, the numbers do not add up, and the
    rest counts as normal.

    >>> [priority.name for priority in _priorities((1, 2, 5), (0, 0, 4), 4)]
    ['HIGH', 'NORMAL', 'NORMAL', 'LOW']
    """
    taken = [priority for priority in Priority for _ in range(max(before[priority] - after[priority], 0))]
    return (taken + [Priority.NORMAL] * count)[:count]


def _lines(answer: bytes) -> list[bytes]:
    """The lines of a list, without its end; none if the answer is an error."""
    return [] if answer.startswith(b"ERR ") else answer.splitlines()[:-1]
