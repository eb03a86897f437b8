"""What the engine's verbs cost when there is little and when there is much: they should cost the same.

python bench/engine_cost.py [--rounds 15] [--only partitions] [--json]

Each scenario has a small and a large engine side by side in one process, and gives them the same work in turn.
Costs are CPU time, the best of several rounds, so that a busy machine does not spoil the comparison. Memory is
what a fresh process grows by. The garbage collector is set as the server sets it (geartrain.runtime.memory).
"""

import argparse
import gc
import itertools
import json
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import PayloadReader
from geartrain.engine.job import LiveJob
from geartrain.engine.limits import FlowLimits
from geartrain.engine.policy import FunctionPolicy
from geartrain.engine.worker import Worker
from geartrain.engine.workflow_verbs import MemberJob
from geartrain.model import pack_parents
from geartrain.rates import Rate
from geartrain.runtime import memory as garbage

FLAT = 1.2  # at most so much more with much than with little
SURCHARGE = 1.3  # at most so much more for a job with a partition or a limit than for a plain one
MEMBER = 2.0  # at most so much more for a job that another one waits for, or that waits for another one
BYTES_PER_JOB = 500
BYTES_PER_KEY = 100  # more, for a job with a unique key
BYTES_PER_PARTITION = 600  # more, for a job with a partition of its own
BATCH = 1000  # calls of one verb per measurement
SECONDS = 120.0  # what has not begun by then is left out
SECONDS_PER_PAIR = 3.0
COMMON = b"common"
MANY = 1_000_000
UNREACHED = FlowLimits(MANY, MANY, Rate(1 / MANY, MANY), Rate(1 / MANY, MANY))  # all limits, which no round reaches
ONE_EACH = FlowLimits(max_running_per_partition=1)  # every claim holds a partition, and every end releases it

BYTES_ON_DISK = -200  # more, for a job whose payload is on disk
# By the kind of the jobs.
BYTES_MORE = {"unique keys": BYTES_PER_KEY, "partitions": BYTES_PER_PARTITION, "payloads on disk": BYTES_ON_DISK}

Costs = dict[str, float]  # microseconds by verb


class Cost(NamedTuple):
    """One line of the table."""

    scenario: str
    verb: str
    small: float  # microseconds per call
    large: float
    most: float = FLAT  # the ratio that it should not exceed

    @property
    def ratio(self) -> float:
        return self.large / self.small


class Hand(Worker):
    """A worker that notes down when it is woken."""

    __slots__ = ("woken",)

    def __init__(self, woken: "list[Hand]") -> None:
        super().__init__("bench")
        self.woken = woken  # shared by all hands of a stage

    def wake(self) -> None:
        self.woken.append(self)


class Stage:
    """An engine with a crowd in it, and the worker whose verbs are measured."""

    def __init__(self, functions: Iterable[bytes] = (COMMON,)) -> None:
        self.engine = Engine()
        self.engine.now = 1000.0
        self.woken: list[Hand] = []
        self.worker = Hand(self.woken)
        self.targets: list[bytes] = []  # the functions that jobs are submitted to, in turn
        for name in functions:
            self.engine.register(self.worker, name)
            self.targets.append(name)
        self.engine.claim(self.worker)
        self.serial = 0

    def queue(self, count: int) -> "Stage":
        """So many jobs that wait."""
        for _ in range(count):
            self._submit(self._payload())
        return self

    def join(self, count: int, asleep: bool, own_function: bool) -> "Stage":
        """So many other workers of the common function: asleep, or each with a job that it runs."""
        for number in range(count):
            other = Hand(self.woken)
            self.engine.register(other, COMMON)
            if own_function:
                self.engine.register(other, b"own %d" % number)
            if asleep:
                self.engine.sleep(other)
            else:
                self._submit(b"")
                self.engine.claim(other)
        return self

    def round(self) -> Costs:
        """Submit, claim and complete a batch; every verb is timed by itself."""
        engine, worker = self.engine, self.worker
        payloads = [self._payload() for _ in range(BATCH)]
        jobs: list[LiveJob | None] = []
        targets = [self.targets[(self.serial + n) % len(self.targets)] for n in range(BATCH)]
        engine.now += 1.0
        costs: Costs = {}
        with _timed(costs, "submit"):
            for target, payload in zip(targets, payloads, strict=True):
                engine.submit(target, b"", payload, 1, True)
        with _timed(costs, "claim"):
            jobs += [engine.claim(worker) for _ in range(BATCH)]
        with _timed(costs, "complete"):
            for job in jobs:
                assert job is not None
                engine.complete(worker, job, b"")
        return costs

    def round_one_by_one(self) -> Costs:
        """A job at a time, each into an empty queue: submitted, fetched by whoever was woken, completed."""
        engine, woken = self.engine, self.woken
        work = [(self.targets[n % len(self.targets)], self._payload()) for n in range(BATCH)]
        costs: Costs = {}
        with _timed(costs, "whole job"):
            for target, payload in work:
                engine.submit(target, b"", payload, 1, True)
                worker = woken.pop() if woken else self.worker
                job = engine.claim(worker)
                assert job is not None
                engine.complete(worker, job, b"")
                if worker is not self.worker:
                    engine.sleep(worker)
        engine.tick(engine.now + 1.0)
        return costs

    def round_of_cancels(self) -> Costs:
        """Cancel jobs that wait, and put others in their place."""
        engine = self.engine
        jobs = [engine.submit(COMMON, b"", self._payload(), 1, True) for _ in range(BATCH)]
        costs: Costs = {}
        with _timed(costs, "cancel"):
            for job in jobs:
                engine.cancel(job)
        return costs

    def round_of_lookups(self) -> Costs:
        """Look for a unique key that is there."""
        engine = self.engine
        job = engine.submit(self.targets[0], b"key", b"", 1, True)
        costs: Costs = {}
        with _timed(costs, "find_unique", BATCH // 20):
            for _ in range(BATCH // 20):
                engine.find_unique(b"key")
        engine.cancel(job)
        return costs

    def _payload(self) -> bytes:
        self.serial += 1
        return b"%064d" % self.serial

    def _submit(self, payload: bytes) -> None:
        self.engine.submit(self.targets[self.serial % len(self.targets)], b"", payload, 1, True)


class PartitionStage(Stage):
    """Jobs that wait in so many partitions, at least one in each; 0: they have none."""

    def __init__(self, partitions: int, limits: FlowLimits | None = None, jobs: int = 0) -> None:
        super().__init__()
        self.partitions = [b"tenant %d" % number for number in range(partitions)] or [b""]
        if limits is not None:
            self.engine.configure(COMMON, FunctionPolicy(limits=limits))
        self.queue(max(jobs, partitions, BATCH))

    def _submit(self, payload: bytes) -> None:
        self.engine.submit(COMMON, b"", payload, 1, True, partition=self.partitions[self.serial % len(self.partitions)])

    def round(self) -> Costs:
        """Submit, claim and complete a batch, the partitions in turn."""
        engine, worker = self.engine, self.worker
        work = [(self.partitions[self.serial % len(self.partitions)], self._payload()) for _ in range(BATCH)]
        engine.now += 2.0
        engine.tick(engine.now)
        costs: Costs = {}
        with _timed(costs, "submit"):
            for partition, payload in work:
                engine.submit(COMMON, b"", payload, 1, True, partition=partition)
        with _timed(costs, "claim"):
            jobs = [engine.claim(worker) for _ in range(BATCH)]
        with _timed(costs, "complete"):
            for job in jobs:
                assert job is not None
                engine.complete(worker, job, b"")
        costs["whole job"] = sum(costs.values())
        return costs


class WaitingStage(Stage):
    """Jobs that nothing waits for, jobs with a callback that waits for all of them, a chain, or a workflow."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def round(self) -> Costs:
        """A batch of whole jobs."""
        engine, worker = self.engine, self.worker
        payloads = [self._payload() for _ in range(BATCH)]
        engine.now += 1.0
        costs: Costs = {}
        with _timed(costs, "whole job"):
            members: list[LiveJob] = []
            if self.kind == "workflow":
                joined = [MemberJob(COMMON, payload) for payload in payloads]
                engine.submit_workflow([*joined, MemberJob(COMMON, b"", tuple(range(BATCH)))])
                payloads = []
            for payload in payloads:
                after = pack_parents([members[-1].id], runs_anyway=False) if self.kind == "chain" and members else b""
                members.append(engine.submit(COMMON, b"", payload, 1, True, after=after))
            if self.kind == "callback":
                after = pack_parents([member.id for member in members], runs_anyway=False)
                engine.submit(COMMON, b"", b"", 1, True, after=after)
            while (job := engine.claim(worker)) is not None:
                engine.complete(worker, job, b"")
        return costs


class _timed:  # noqa: N801 - reads as a verb in a with statement
    """CPU time of a block, divided by the number of calls in it."""

    def __init__(self, costs: Costs, verb: str, calls: int = BATCH) -> None:
        self.costs, self.verb, self.calls = costs, verb, calls

    def __enter__(self) -> None:
        self.began = time.process_time()

    def __exit__(self, *failure: object) -> None:
        self.costs[self.verb] = (time.process_time() - self.began) * 1e6 / self.calls


def compare(
    name: str, small: Stage, large: Stage, rounds: int, action: Callable[[Stage], Costs], most: float = FLAT
) -> list[Cost]:
    """The best of several rounds on each of the two; of fewer rounds, if they take long."""
    best: list[Costs] = [{}, {}]
    began = time.monotonic()
    for number in range(rounds):
        if number > 1 and time.monotonic() - began > SECONDS_PER_PAIR:
            break
        for costs, stage in zip(best, (small, large), strict=True):
            for verb, cost in action(stage).items():
                costs[verb] = min(cost, costs.get(verb, cost))
    return [Cost(name, verb, best[0][verb], best[1][verb], most) for verb in best[0]]


def names(count: int) -> list[bytes]:
    return [b"function %d" % number for number in range(count)]


def with_bystanders(count: int) -> Stage:
    """A stage with so many functions that its worker does not offer."""
    stage = Stage()
    for name in names(count):
        stage.engine.function(name)
    return stage


def scenarios() -> Iterator[tuple[str, Callable[[], Stage], Callable[[], Stage], Callable[[Stage], Costs]]]:
    """What is compared with what, made only when its turn comes.

    Workers with functions of their own are the hard case: no two of them offer the same.
    """
    usual, one_by_one = Stage.round, Stage.round_one_by_one
    yield "jobs queued: 1,000, 1,000,000", lambda: Stage().queue(1000), lambda: Stage().queue(10**6), usual
    yield (
        "the same, cancelling",
        lambda: Stage().queue(1000),
        lambda: Stage().queue(10**6),
        Stage.round_of_cancels,
    )
    yield "functions: 1, 10,000; offers one", Stage, lambda: with_bystanders(10_000), usual
    yield "functions: 1, 10,000; offers all", Stage, lambda: Stage(names(10_000)), one_by_one
    yield (
        "functions: 1,000, 10,000; offers all",
        lambda: Stage(names(1_000)),
        lambda: Stage(names(10_000)),
        one_by_one,
    )
    yield "the same, looking for a key", Stage, lambda: Stage(names(10_000)), Stage.round_of_lookups
    for few, own, asleep in itertools.product((10, 1_000), (False, True), (True, False)):
        pair = (
            f"workers: {few:,}, 10,000; {'asleep' if asleep else 'busy'}{' (own functions)' if own else ''}",
            lambda few=few, asleep=asleep, own=own: Stage().join(few, asleep, own),
            lambda asleep=asleep, own=own: Stage().join(10_000, asleep, own),
        )
        if not asleep and not own:
            yield (*pair, usual)
        yield (*pair, one_by_one)


Build = Callable[[], Stage]


def partition_scenarios() -> Iterator[tuple[str, Build, Build, float]]:
    """Partitions and limits beside plain jobs, as many of them; and many partitions beside few."""
    for count, (name, limits) in itertools.product(
        (1, 1_000, 100_000), {"no limits": None, "limits": UNREACHED, "one job each": ONE_EACH}.items()
    ):
        if limits is not ONE_EACH or count >= BATCH:
            yield (
                f"partitions: none, {count:,}; {name}",
                lambda count=count: PartitionStage(0, jobs=count),
                lambda count=count, limits=limits: PartitionStage(count, limits),
                SURCHARGE,
            )
    for name, limits in {"no limits": None, "limits": UNREACHED}.items():
        yield (
            f"partitions: 1,000, 100,000; {name}",
            lambda limits=limits: PartitionStage(1_000, limits),
            lambda limits=limits: PartitionStage(100_000, limits),
            FLAT,
        )


def waiting_scenarios() -> Iterator[tuple[str, Build, Build, float]]:
    """Jobs that wait for others beside plain ones."""
    for kind in ("callback", "chain", "workflow"):
        yield (
            f"waiting: none, a {kind} of 1,000",
            lambda: WaitingStage(""),
            lambda kind=kind: WaitingStage(kind),
            MEMBER,
        )


def bytes_per_job(count: int, kind: str) -> float:
    """In a process of its own: how much it grows by for each job that waits."""
    command = [sys.executable, __file__, "--grow", str(count), "--kind", kind]
    return float(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)


def grow(count: int, kind: str) -> float:
    """Queue so many background jobs with a 64-byte payload each.

    With payloads on disk, some are in memory: as large a part as that of `payload_memory` in ten million jobs.
    """
    has_key, has_partition = kind == "unique keys", kind == "partitions"
    engine = Engine()
    if kind == "payloads on disk":
        engine.payloads.reader = PayloadReader()
        engine.payloads.budget = 256 * 1024**2 * count // 10_000_000
    engine.now = 1000.0
    garbage.tune_collector()
    before = _resident()
    for number in range(count):
        key = b"key %d" % number if has_key else b""
        partition = b"tenant %d" % number if has_partition else b""
        job = engine.submit(COMMON, key, b"%064d" % number, 1, True, partition=partition)
        if engine.payloads.reader is not None:
            engine.payloads.committed([job])
    return (_resident() - before) / count


def _resident() -> int:
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


def _round(stage: Stage) -> Costs:
    return stage.round()


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def measure(rounds: int, only: str = "") -> tuple[list[Cost], dict[str, float]]:
    began = time.monotonic()
    garbage.tune_collector()
    costs: list[Cost] = []
    flat = ((*scenario, FLAT) for scenario in scenarios())
    new = itertools.chain(partition_scenarios(), waiting_scenarios())
    extra = ((name, small, large, _round, most) for name, small, large, most in new)
    for name, small, large, action, most in itertools.chain(extra, flat):
        if only not in name:
            continue
        if time.monotonic() - began > SECONDS:
            say(f"no time left for: {name}")
            continue
        say(f"{time.monotonic() - began:5.1f} s  {name}")
        costs += compare(name, small(), large(), rounds, action, most)
        gc.collect()
    memory = {}
    for count, kind in (
        (300_000, ""),
        (1_000_000, ""),
        (300_000, "unique keys"),
        (300_000, "partitions"),
        (1_000_000, "payloads on disk"),
    ):
        name = f"{count:,} jobs" + (f" with {kind}" if kind else "")
        if only not in name:
            continue
        say(f"{time.monotonic() - began:5.1f} s  memory of {name}")
        memory[name] = bytes_per_job(count, kind)
    return costs, memory


def table(costs: list[Cost], memory: dict[str, float]) -> str:
    lines = [f"{'microseconds per call':52} {'verb':12} {'small':>8} {'large':>8} {'ratio':>6}"]
    for cost in costs:
        mark = "" if cost.ratio <= cost.most else "  NOT FLAT" if cost.most == FLAT else "  TOO MUCH"
        lines.append(f"{cost.scenario:52} {cost.verb:12} {cost.small:8.2f} {cost.large:8.2f} {cost.ratio:6.2f}{mark}")
    lines += ["", "bytes of memory per queued background job, payload 64 bytes"]
    for name, each in memory.items():
        most = BYTES_PER_JOB + next((more for kind, more in BYTES_MORE.items() if kind in name), 0)
        lines.append(f"{name:52} {each:8.0f}{'' if each <= most else '  TOO MUCH'}")
    lines += ["", f"garbage collector: frozen at the start, thresholds {garbage.THRESHOLDS}, as in the server"]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=15, help="how often each pair is measured; the best counts")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--grow", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--kind", choices=["", *BYTES_MORE], default="", help=argparse.SUPPRESS)
    parser.add_argument("--only", default="", help="measure only scenarios whose name contains this")
    options = parser.parse_args()
    if options.grow:
        print(grow(options.grow, options.kind))
        return
    costs, memory = measure(options.rounds, options.only)
    if options.json:
        rows = [cost._asdict() | {"ratio": cost.ratio} for cost in costs]
        print(json.dumps({"costs": rows, "bytes_per_job": memory, "gc": garbage.THRESHOLDS}, indent=2))
    else:
        print(table(costs, memory))


if __name__ == "__main__":
    main()
