"""One soak from its start to its account."""

import asyncio
import dataclasses
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from campaigns.soak import clients, droppers, plan, workers
from campaigns.soak.account import Account, Verdict, stored_jobs, verify
from campaigns.soak.job import FUNCTION, POISON
from campaigns.soak.plan import Fault, FaultKind
from campaigns.soak.server import SoakServer
from campaigns.soak.workers import Workers
from tests.support import serving
from tests.support.gearman_peer import Peer

PATIENCE = 120.0  # seconds without any progress until a wait has failed
ALLOWED_GROWTH = 64 * 1024  # KiB: the server's memory at rest, at the end of a soak and at its beginning
_LOOK_EVERY = 0.2  # seconds
_FUNCTIONS = (FUNCTION.encode(), POISON.encode())
_LAST_LIFE_SHARE = 0.1  # of the time before


@dataclasses.dataclass
class Resources:
    """What the server uses when nothing happens."""

    memory: int  # KiB
    descriptors: int


@dataclasses.dataclass
class SoakFigures:
    """What a soak did and saw."""

    seed: int
    seconds: float = 0.0
    faults: Counter[str] = dataclasses.field(default_factory=Counter)
    lives: int = 0
    begin: Resources | None = None
    end: Resources | None = None
    most_memory: int = 0  # KiB
    ran: int = 0
    missing: list[str] = dataclasses.field(default_factory=list)  # what could not be used here
    verdict: Verdict | None = None
    problems: list[str] = dataclasses.field(default_factory=list)


class SoakCampaign:
    """The jobs and the faults of one seed."""

    def __init__(self, seed: int, home: Path, say: Callable[[str], None] = print) -> None:
        self.account = Account()
        self.figures = SoakFigures(seed)
        self._seed = seed
        self._home = home
        self._say = say
        self._chance = random.Random(f"soak {seed}")
        self._server = SoakServer(home, random.Random())
        self._workers = Workers(self._server.urls, home)
        self._began = 0.0

    def run(self, faults: Iterable[Fault], seconds: float = float("inf"), acknowledgements: int = 1) -> SoakFigures:
        """Load and faults until the seconds are over or there is no other fault, then load alone, then the account.

        A fault also waits until so many more jobs were acknowledged since the one before it ended.
        """
        self._began = time.monotonic()
        try:
            self._server.start()
            self.figures.begin = self._resources()
            self._workers.start()
            asyncio.run(self._under_load(faults, seconds, acknowledgements))
            self._drain()
            self._workers.stop()
            self._rest()
            self._stop_server()
            self._settle()
        finally:
            self._workers.kill()
            self._server.kill()
        self.figures.seconds = time.monotonic() - self._began
        self.figures.lives = self._server.lives
        return self.figures

    # Load and faults

    async def _under_load(self, faults: Iterable[Fault], seconds: float, acknowledgements: int) -> None:
        stop = asyncio.Event()
        peers, missing = clients.available(self._server.urls, self.account, self._seed)
        self.figures.missing = missing + ([] if self._server.can_step_clock else ["libfaketime"])
        async with asyncio.TaskGroup() as group:
            for task in clients.tasks(peers, self.account, self._seed, stop):
                group.create_task(task)
            progress = group.create_task(self._report_progress(stop))
            poison = group.create_task(self._take_poison(stop))
            try:
                for fault in faults:
                    if time.monotonic() - self._began > seconds:
                        break
                    await self._wait_for_load(acknowledgements, fault.pause)
                    await self._inject(fault)
                await self._last_life(acknowledgements)
            finally:
                stop.set()
            await asyncio.gather(progress, poison)

    async def _wait_for_load(self, acknowledgements: int, seconds: float) -> None:
        before = self.account.acknowledged
        await asyncio.sleep(seconds)
        deadline = time.monotonic() + PATIENCE
        while self.account.acknowledged < before + acknowledgements:
            if time.monotonic() > deadline:
                raise AssertionError(f"no job was acknowledged for {PATIENCE:g} seconds\n{self._server.log[-4000:]}")
            await asyncio.sleep(_LOOK_EVERY)

    async def _last_life(self, acknowledgements: int) -> None:
        """Load without faults; the clock is ahead of all times so far."""
        self._say(f"{self._elapsed()} the last life of the server begins")
        self._server.kill()
        self._server.set_clock(plan.LAST_CLOCK_OFFSET)
        self._server.start()
        share = (time.monotonic() - self._began) * _LAST_LIFE_SHARE
        await self._wait_for_load(acknowledgements, share)

    async def _inject(self, fault: Fault) -> None:
        self._say(f"{self._elapsed()} {fault.kind} ({fault.duration:.1f} s, {fault.chance:.2f})")
        self.figures.faults[fault.kind] += 1
        self.figures.most_memory = max(self.figures.most_memory, self._server.memory)
        await _INJECTIONS[fault.kind](self, fault)

    async def _kill_server(self, fault: Fault) -> None:
        self._server.kill()
        self._server.start()

    async def _stop_worker(self, fault: Fault) -> None:
        worker = self._workers.pick(fault.chance)
        worker.signal(signal.SIGSTOP)
        await asyncio.sleep(fault.duration)
        worker.signal(signal.SIGCONT)

    async def _kill_worker(self, fault: Fault) -> None:
        worker = self._workers.pick(fault.chance)
        worker.kill()
        worker.start()

    async def _fill_disk(self, fault: Fault) -> None:
        self._server.fill_disk()
        await asyncio.sleep(fault.duration)
        self._server.empty_disk()

    async def _drop_connections(self, fault: Fault) -> None:
        await droppers.drop_connections(self._server.urls, 1 + int(fault.chance * 50), self._chance)

    async def _step_clock(self, fault: Fault) -> None:
        self._server.set_clock(plan.CLOCK_OFFSETS[int(fault.chance * len(plan.CLOCK_OFFSETS))])

    async def _take_poison(self, stop: asyncio.Event) -> None:
        """A worker that disconnects with each job: the jobs of this function end as dead ones."""
        chance = random.Random(f"poison {self._seed}")
        while not stop.is_set():
            await asyncio.to_thread(self._vanish_with_poison, chance)
            await asyncio.sleep(_LOOK_EVERY)

    def _vanish_with_poison(self, chance: random.Random) -> None:
        try:
            workers.vanish_with_poison(self._server.port("gearman"), chance)
        except (OSError, AssertionError):  # the server is gone
            pass

    async def _report_progress(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            jobs, answers = len(self.account.submissions), self.account.acknowledged
            results = sum(self.account.foreground.values())
            self._say(f"{self._elapsed()} {jobs} submitted, {answers} acknowledged, {results} foreground results")
            try:
                await asyncio.wait_for(stop.wait(), 10.0)
            except TimeoutError:
                pass

    # The end

    def _drain(self) -> None:
        """Wait until no job waits or runs."""
        self._say(f"{self._elapsed()} the load has ended; waiting for the rest of the jobs")
        left = self._unfinished()
        deadline = time.monotonic() + PATIENCE
        while left:
            self._vanish_with_poison(self._chance)
            time.sleep(_LOOK_EVERY)
            now = self._unfinished()
            if now != left:
                deadline = time.monotonic() + PATIENCE
            if time.monotonic() > deadline:
                raise AssertionError(f"{now} jobs are left, and none has ended for {PATIENCE:g} seconds")
            left = now

    def _unfinished(self) -> int:
        with Peer(self._server.port("gearman")) as peer:
            return sum(int(columns[1]) for columns in peer.listing("status") if columns[0] in _FUNCTIONS)

    def _rest(self) -> None:
        """All peers are gone: memory and descriptors have to be back."""
        begin = self.figures.begin
        assert begin is not None
        deadline = time.monotonic() + PATIENCE
        while (end := self._resources()).descriptors > begin.descriptors and time.monotonic() < deadline:
            time.sleep(_LOOK_EVERY)
        self.figures.end = end
        self.figures.most_memory = max(self.figures.most_memory, end.memory)
        if end.descriptors > begin.descriptors:
            self.figures.problems.append(f"{end.descriptors} descriptors are open, {begin.descriptors} were at first")
        if end.memory > begin.memory + ALLOWED_GROWTH:
            self.figures.problems.append(f"memory grew from {begin.memory} KiB to {end.memory} KiB")

    def _stop_server(self) -> None:
        code = self._server.stop()
        if code:
            self.figures.problems.append(f"the server stopped with exit code {code}")
        faults = self._server.logged_faults()
        self.figures.problems += [f"the server logged: {line}" for line in faults[:5]]

    def _settle(self) -> None:
        command = [str(serving.installed_command()), "dump", "--records", "--store", self._server.store]
        dump = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=600)
        ran = self._workers.ran()
        self.figures.ran = sum(ran.values())
        self.figures.verdict = verify(self.account, stored_jobs(dump.stdout.splitlines()), ran)
        self.figures.problems += self.figures.verdict.problems

    def _resources(self) -> Resources:
        return Resources(self._server.memory, self._server.descriptors)

    def _elapsed(self) -> str:
        return f"{time.monotonic() - self._began:7.1f} s:"


_INJECTIONS = {
    FaultKind.KILL_SERVER: SoakCampaign._kill_server,
    FaultKind.STOP_WORKER: SoakCampaign._stop_worker,
    FaultKind.KILL_WORKER: SoakCampaign._kill_worker,
    FaultKind.FULL_DISK: SoakCampaign._fill_disk,
    FaultKind.DROP_CONNECTIONS: SoakCampaign._drop_connections,
    FaultKind.STEP_CLOCK: SoakCampaign._step_clock,
}
