"""Workers of protocols in which a connection has one job at a time: as many connections as jobs may run at once.

A lane that breaks takes its link with it: the others lead to the same server, and the library above opens a new link.
"""

import abc
import asyncio
from typing import ClassVar

from geartrain.address import Address
from geartrain.client.link import Assignment, Hands, Lost, WorkerLink
from geartrain.errors import ClientError, WireError


class LaneJob(Assignment):
    """A job, and the connection that it came by."""

    __slots__ = ("lane",)

    def __init__(self, lane: "Lane", function: bytes, payload: bytes) -> None:
        super().__init__(function, payload)
        self.lane = lane


class Lane(abc.ABC):
    """One connection: it asks for a job, has it, answers, and asks again."""

    def __init__(self, link: "LanedWorker") -> None:
        self.link = link
        self.job: LaneJob | None = None
        self.leaving = False  # its end is no surprise any more

    @property
    def asking(self) -> bool:
        """Whether a job may be on its way."""
        return False

    @abc.abstractmethod
    async def open(self) -> None:
        """Connect, and return when the server has answered."""

    @abc.abstractmethod
    def start(self) -> None:
        """Offer the link's functions, and ask for a job."""

    @abc.abstractmethod
    def refresh(self) -> None:
        """The link's functions have changed: say so, now if there is no job or else with its end."""

    @abc.abstractmethod
    def rest(self) -> None:
        """Ask for no more jobs: leave, now if there is no job or else with its end."""

    @abc.abstractmethod
    def hang_up(self) -> None:
        """Close the connection at once; nobody is told."""

    @abc.abstractmethod
    async def close(self) -> None:
        """Send what has gathered, and close the connection; nobody is told."""

    def assign(self, function: bytes, payload: bytes) -> None:
        """The server has given it a job."""
        self.job = LaneJob(self, function, payload)
        self.link.hands.assigned(self.job)

    def broken(self, error: Exception) -> None:
        """The connection has ended by itself."""
        self.link.lane_broken(self, error)


class LanedWorker(WorkerLink):
    """The lanes, and what they have in common."""

    lane: ClassVar[type[Lane]]

    def __init__(self, address: Address, lost: Lost, hands: Hands, name: bytes, concurrency: int) -> None:
        super().__init__(address, lost, hands, name, concurrency)
        self.functions: dict[bytes, float] = {}
        self.resting = False
        self.lanes: set[Lane] = set()
        self._over = False
        self._rested: asyncio.Future[None] | None = None
        self._renewals: set[asyncio.Task[None]] = set()

    async def open(self, functions: dict[bytes, float]) -> None:
        """One lane tells whether there is a server; then the others."""
        self.functions = dict(functions)
        try:
            lanes = [await self._opened()]
            lanes += await asyncio.gather(*(self._opened() for _ in range(self.concurrency - 1)))
        except BaseException:
            self._over = True
            for lane in self.lanes:
                lane.hang_up()
            raise
        for lane in lanes:
            lane.start()

    def offer(self, function: bytes, timeout: float) -> None:
        """Say it on every lane."""
        self.functions[function] = timeout
        self._refresh()

    def withdraw(self, function: bytes) -> None:
        """Say it on every lane; one that runs a job of it when that is over, or else the server would take it back."""
        self.functions.pop(function, None)
        self._refresh()

    def rest(self) -> None:
        """Leave, lane by lane."""
        self.resting = True
        for lane in list(self.lanes):
            lane.rest()

    async def rested(self) -> None:
        """No lane has asked for a job without having been answered."""
        if any(lane.asking for lane in self.lanes):
            self._rested = asyncio.get_running_loop().create_future()
            await self._rested

    def release(self, job: Assignment) -> None:
        """Neither protocol can ask for a job without having answered the last one: begin anew."""
        self.renew(self.lane_of(job))

    async def close(self) -> None:
        """Hang up everywhere."""
        self._over = True
        renewals = list(self._renewals)
        for renewal in renewals:
            renewal.cancel()
        await asyncio.gather(*renewals, return_exceptions=True)
        await asyncio.gather(*(lane.close() for lane in self.lanes))
        self.lanes.clear()
        self.answered()

    # What lanes say

    def lane_of(self, job: Assignment) -> Lane:
        """Where a job came from."""
        assert isinstance(job, LaneJob)
        return job.lane

    def renew(self, lane: Lane) -> None:
        """Take a fresh connection in the place of this one, whose job goes back to the server if it still has one."""
        lane.hang_up()
        self.lanes.discard(lane)
        if self._over or self.resting:
            return
        renewal = asyncio.get_running_loop().create_task(self._replace())
        self._renewals.add(renewal)
        renewal.add_done_callback(self._renewals.discard)

    def answered(self) -> None:
        """A lane has been answered, or is gone."""
        if self._rested is not None and not self._rested.done() and not any(lane.asking for lane in self.lanes):
            self._rested.set_result(None)

    def lane_broken(self, lane: Lane, error: Exception) -> None:
        """A connection has ended."""
        self.lanes.discard(lane)
        self.answered()
        if not lane.leaving:
            self._fail(error)

    async def _opened(self) -> Lane:
        lane = self.lane(self)
        self.lanes.add(lane)
        await lane.open()
        return lane

    async def _replace(self) -> None:
        try:
            lane = await self._opened()
        except (OSError, ClientError, WireError) as error:
            if not self.resting:
                self._fail(error)
            return
        lane.start()
        if self.resting:
            lane.rest()

    def _refresh(self) -> None:
        for lane in list(self.lanes):
            lane.refresh()

    def _fail(self, error: Exception) -> None:
        if self._over:
            return
        self._over = True
        for lane in self.lanes:
            lane.hang_up()
        self.lanes.clear()
        self.answered()
        self.lost(error)
