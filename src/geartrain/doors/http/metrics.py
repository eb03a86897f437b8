"""GET /metrics, for Prometheus. The names do not change between versions: docs/metrics.md lists them.

The number of series is bounded: the busiest functions have their own, the others share one.
"""

import asyncio
import heapq
import resource
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from geartrain.admin import borrowed_jobs, views
from geartrain.doors.http.door import CONTROL
from geartrain.doors.http.request import ApiRequest
from geartrain.doors.http.response import Response
from geartrain.engine.counters import MICRO, DurationHistogram
from geartrain.engine.engine import Engine
from geartrain.engine.function import Function
from geartrain.rights import READ

if TYPE_CHECKING:
    from geartrain.doors.http.context import HttpContext


MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def label(value: bytes) -> str:
    """Bytes as the value of a label: UTF-8 unchanged, other bytes as `\\xff`.

    >>> label(b'say "hi"'), label(b"caf\\xc3\\xa9"), label(b"\\xff")
    ('say \\\\"hi\\\\"', 'café', '\\\\\\\\xff')
    """
    return value.decode("utf-8", "backslashreplace").replace("\0", "\\x00").translate(_ESCAPES)


class MetricFamily:
    """A metric with all its samples."""

    def __init__(self, name: str, kind: str, help: str) -> None:
        self.name = name
        self._lines = [f"# HELP {name} {help}", f"# TYPE {name} {kind}"]

    def add(self, value: float, labels: str = "", suffix: str = "") -> None:
        """Add a sample; `labels` is the text between the braces."""
        braces = f"{{{labels}}}" if labels else ""
        self._lines.append(f"{self.name}{suffix}{braces} {number(value)}")

    def add_many(self, samples: Iterable[tuple[str, float]]) -> None:
        """Add samples by their labels."""
        name = self.name
        self._lines += [f"{name}{{{labels}}} {number(value)}" for labels, value in samples]

    def add_histogram(self, bounds: Sequence[float], counts: Sequence[int], sum: float, labels: str = "") -> None:
        """Add a histogram: a count per bucket, the last one for values above all bounds."""
        total = 0
        comma = f"{labels}," if labels else ""
        for bound, count in zip(bounds, counts, strict=False):
            total += count
            self.add(total, f'{comma}le="{bound:g}"', "_bucket")
        total += counts[-1]
        self.add(total, f'{comma}le="+Inf"', "_bucket")
        self.add(sum, labels, "_sum")
        self.add(total, labels, "_count")

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


def number(value: float) -> str:
    """A number; integers without a decimal point.

    >>> number(3.0), number(0.25)
    ('3', '0.25')
    """
    return str(int(value)) if value == int(value) else repr(float(value))


OTHERS: Final = "_other"

# The engine's buckets double, beginning with a microsecond. Here each is four times the one before, from an eighth of
# a millisecond to a day and a half.
_EXPONENTS: Final = range(7, 39, 2)
# For single functions, of which there may be a thousand: each is sixteen times the one before, up to nine hours.
_FUNCTION_EXPONENTS: Final = range(7, 39, 4)
_SLICE: Final = 50  # functions between two breaks for the event loop


class FunctionMetric(NamedTuple):
    """A metric that has one sample per function."""

    name: str
    kind: str
    help: str
    value: Callable[[Function, "_MetricNumbers"], float]
    labels: str = ""  # besides the name of the function
    add_up: Callable[[Iterable[float]], float] = sum  # for functions that share a series


class _MetricNumbers:
    """The numbers of functions, without jobs of other servers, which count at their home, and without their workers."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._borrowed = borrowed_jobs.by_function(engine)

    def queued(self, function: Function) -> int:
        return function.queued - self._borrowed.get(function.name, borrowed_jobs.NONE).queued

    def running(self, function: Function) -> int:
        return function.running - self._borrowed.get(function.name, borrowed_jobs.NONE).running

    def dead(self, function: Function) -> int:
        return self.engine.dead_counts.get(function.name, 0)

    def workers(self, function: Function) -> int:
        return function.workers - function.distant_workers

    def age(self, function: Function) -> float:
        oldest = function.oldest_ready_at()
        return max(self.engine.now - oldest, 0.0) if oldest else 0.0


_STATE_HELP: Final = "Jobs of a function by state."

FUNCTION_METRICS: Final = (
    FunctionMetric("geartrain_jobs", "gauge", _STATE_HELP, lambda f, n: n.queued(f), ',state="queued"'),
    FunctionMetric("geartrain_jobs", "gauge", _STATE_HELP, lambda f, n: n.running(f), ',state="running"'),
    FunctionMetric("geartrain_jobs", "gauge", _STATE_HELP, lambda f, _: f.scheduled, ',state="scheduled"'),
    FunctionMetric("geartrain_jobs", "gauge", _STATE_HELP, lambda f, _: f.blocked, ',state="blocked"'),
    FunctionMetric("geartrain_jobs", "gauge", _STATE_HELP, lambda f, n: n.dead(f), ',state="dead"'),
    FunctionMetric(
        "geartrain_oldest_job_age_seconds", "gauge",
        "Age of the queued job that has been ready to run for longest; 0 if none is queued.",
        lambda f, n: n.age(f), add_up=max,
    ),
    FunctionMetric(
        "geartrain_function_workers", "gauge", "Workers that have registered the function.", lambda f, n: n.workers(f),
    ),
    FunctionMetric(
        "geartrain_function_paused", "gauge", "1 while the function is paused.", lambda f, _: f.paused,
    ),
    FunctionMetric("geartrain_jobs_submitted_total", "counter", "Submitted jobs.", lambda f, _: f.submitted),
    FunctionMetric("geartrain_jobs_completed_total", "counter", "Completed jobs.", lambda f, _: f.completed),
    FunctionMetric(
        "geartrain_jobs_failed_total", "counter", "Failed and dead jobs.", lambda f, _: f.failed,
    ),
    FunctionMetric(
        "geartrain_jobs_cancelled_total", "counter", "Cancelled jobs.", lambda f, _: f.outcomes.cancelled,
    ),
    FunctionMetric(
        "geartrain_jobs_expired_total", "counter", "Jobs that no worker got in time.", lambda f, _: f.outcomes.expired,
    ),
    FunctionMetric(
        "geartrain_jobs_retried_total", "counter", "Jobs queued again after a failed attempt.", lambda f, _: f.retries,
    ),
    FunctionMetric(
        "gearman_jobs", "gauge", "number of jobs queued or running", lambda f, n: n.queued(f) + n.running(f),
    ),
    FunctionMetric("gearman_jobs_running", "gauge", "number of running jobs", lambda f, n: n.running(f)),
    FunctionMetric(
        "gearman_jobs_waiting", "gauge", "number of jobs waiting for an available worker", lambda f, n: n.queued(f),
    ),
    FunctionMetric("gearman_workers", "gauge", "number of capable workers", lambda f, n: n.workers(f)),
)  # fmt: skip


async def metrics(request: ApiRequest) -> Response:
    """GET /metrics."""
    context = request.context
    engine = request.begin_tick()
    engine.require_everywhere(READ)
    parts = [family.text() for family in _server_metrics(engine, await context.admin.system())]
    own, others = _choose(context)
    parts += [family.text() for family in await _function_histograms(engine, own)]
    if engine.forgotten.outcomes.total:  # otherwise the sum of all functions would go back when one is forgotten
        others.append(engine.forgotten)
    families: dict[str, MetricFamily] = {}
    numbers = _MetricNumbers(engine)
    for row in FUNCTION_METRICS:
        family = families.setdefault(row.name, MetricFamily(row.name, row.kind, row.help))
        family.add_many(
            (f'function="{name}"{row.labels}', row.value(function, numbers)) for name, function in own.items()
        )
        if others:
            family.add(
                row.add_up(row.value(function, numbers) for function in others), f'function="{OTHERS}"{row.labels}'
            )
        await asyncio.sleep(0)  # a thousand functions take a millisecond per metric
    parts += [family.text() for family in families.values()]
    return Response("".join(parts).encode(), media_type=MEDIA_TYPE)


def _choose(context: "HttpContext") -> tuple[dict[str, Function], list[Function]]:
    """The functions that have a series of their own, by label, and the rest."""
    functions = [function for name, function in context.tick_loop.engine.functions.items() if name != CONTROL]
    limit = context.options.metrics_functions
    if len(functions) > limit:
        chosen = heapq.nlargest(limit, functions, key=lambda function: (function.total, function.submitted))
    else:
        chosen = functions
    own: dict[str, Function] = {}
    for function in chosen:  # two names may have the same label, and a series must not occur twice
        own.setdefault(label(function.name), function)
    own.pop(OTHERS, None)
    own_names = {function.name for function in own.values()}
    return own, [function for function in functions if function.name not in own_names]


def _server_metrics(engine: Engine, system: views.System) -> Iterable[MetricFamily]:
    yield _info(
        "geartrain_build_info",
        "Version of the server, Python, event loop, and whether the core is compiled.",
        _build_labels(system),
    )
    yield _one("geartrain_up", "gauge", "1: the server answers.", 1)
    yield _one("geartrain_functions", "gauge", "Known functions.", len(engine.functions))
    yield _one(
        "geartrain_queued_bytes", "gauge",
        "Payloads in memory of all jobs that have not ended, dead ones included, and 512 bytes for each job.",
        engine.queued_bytes,
    )  # fmt: skip
    payloads = MetricFamily("geartrain_payload_bytes", "gauge", "Payloads of jobs that have not ended, by place.")
    payloads.add_many(
        [('place="memory"', engine.payloads.warm_bytes), ('place="disk"', int(engine.payloads.cold_bytes))]
    )
    yield payloads
    yield _one("geartrain_cold_jobs", "gauge", "Jobs whose payloads are on disk only.", int(engine.payloads.cold_jobs))
    yield _one("geartrain_queued_bytes_limit", "gauge", "The setting max_queued_bytes.", engine.policy.max_queued_bytes)
    yield _one("geartrain_workers", "gauge", "Connected workers of all protocols.", len(engine.workers))
    doors = MetricFamily("geartrain_connections", "gauge", "Open connections, by protocol.")
    doors.add_many(
        (f'door="{name}"', count) for name, count in {d.protocol: d.connections for d in system.doors}.items()
    )
    yield doors
    yield _histogram("geartrain_job_wait_seconds", "From ready to run until claimed by a worker.", engine.wait_times)
    yield _histogram("geartrain_job_run_seconds", "From claimed until ended.", engine.run_times)
    store = system.store
    yield _one("geartrain_store_pending_changes", "gauge", "Changes that are not durable yet.", store.pending)
    yield _one("geartrain_store_commits_total", "counter", "Batches made durable.", store.commits)
    if store.size is not None:
        yield _one("geartrain_store_size_bytes", "gauge", "Size of the store on disk.", store.size)
    commits = MetricFamily(
        "geartrain_store_commit_seconds", "summary", "Time until a batch is durable; quantiles over recent batches."
    )
    for quantile, seconds in (("0.5", store.commit_p50), ("0.99", store.commit_p99)):
        if seconds is not None:
            commits.add(seconds, f'quantile="{quantile}"')
    commits.add(store.commit_seconds, suffix="_sum")
    commits.add(store.commits, suffix="_count")
    yield commits
    if system.cluster is not None:
        yield from _cluster_metrics(system.cluster)
        home = len(engine.jobs) - len(engine.borrowed) + len(engine.dead)
        yield _one("geartrain_home_jobs", "gauge", "Unfinished jobs of which this server is the home.", home)
    yield _one("process_start_time_seconds", "gauge", "Start time of the process.", system.started_at)
    yield _one("process_resident_memory_bytes", "gauge", "Resident memory of the process.", system.memory)
    used = resource.getrusage(resource.RUSAGE_SELF)
    yield _one("process_cpu_seconds_total", "counter", "User and system CPU time.", used.ru_utime + used.ru_stime)
    yield _one("gearman_up", "gauge", "is gearman up", 1)
    yield _info("gearman_version_info", "gearman version", f'version="{label(system.version.encode())}"')


def _cluster_metrics(cluster: views.ClusterCounts) -> Iterable[MetricFamily]:
    yield _one("geartrain_cluster_nodes", "gauge", "Servers that share the store and are alive.", cluster.nodes)
    yield _one("geartrain_cluster_leader", "gauge", "1: this server leads the cluster.", cluster.leads)
    yield _one(
        "geartrain_lease_left_seconds", "gauge",
        "Time until the other servers may take this one for dead; every commit renews it.", cluster.lease_left,
    )  # fmt: skip
    yield _one(
        "geartrain_takeovers_total", "counter", "Ranges of jobs taken over from servers that were gone.",
        cluster.takeovers,
    )  # fmt: skip
    yield _one(
        "geartrain_taken_over_jobs_total", "counter", "Jobs taken over from servers that were gone.",
        cluster.taken_jobs,
    )  # fmt: skip
    yield _one("geartrain_servers_fenced_total", "counter", "Servers that this one has fenced.", cluster.fenced)
    yield _one(
        "geartrain_resynced_jobs_total", "counter", "Jobs written again after the database had gone back in time.",
        cluster.resynced_jobs,
    )  # fmt: skip
    yield _one("geartrain_lent_jobs", "gauge", "Jobs of this server that run at others.", cluster.lent)
    yield _one("geartrain_borrowed_jobs", "gauge", "Jobs of other servers that this one has.", cluster.borrowed)
    yield _one(
        "geartrain_loans_returned_total", "counter", "Jobs that were lent and came back before a worker had them.",
        cluster.loans_returned,
    )  # fmt: skip
    links = MetricFamily(
        "geartrain_link_round_trip_seconds", "gauge", "How long a message to another server and back took last."
    )
    links.add_many((f'server="{label(name.encode())}"', seconds) for name, seconds in cluster.round_trips.items())
    yield links
    doubts = MetricFamily(
        "geartrain_commits_in_doubt_total", "counter", "Commits whose answer was lost, by what had become of them."
    )
    doubts.add_many((f'outcome="{outcome}"', count) for outcome, count in cluster.in_doubt.items())
    yield doubts
    if cluster.xmin_age is not None:
        yield _one(
            "geartrain_store_xmin_age_seconds", "gauge",
            "Age of the oldest transaction in the database, which keeps dead rows from being removed.",
            cluster.xmin_age,
        )  # fmt: skip


def _build_labels(system: views.System) -> str:
    labels = {
        "version": system.version,
        "python": system.python,
        "loop": system.loop,
        "compiled": "true" if system.compiled else "false",
    }
    return ",".join(f'{name}="{label(value.encode())}"' for name, value in labels.items())


def _one(name: str, kind: str, help: str, value: float) -> MetricFamily:
    family = MetricFamily(name, kind, help)
    family.add(value)
    return family


def _info(name: str, help: str, labels: str) -> MetricFamily:
    family = MetricFamily(name, "gauge", help)
    family.add(1, labels)
    return family


async def _function_histograms(engine: Engine, own: dict[str, Function]) -> list[MetricFamily]:
    """How long jobs of each function waited and ran. Functions without a histogram of their own share one."""
    waits = MetricFamily("geartrain_function_wait_seconds", "histogram", "From ready to run until claimed.")
    runs = MetricFamily("geartrain_function_run_seconds", "histogram", "From claimed until ended.")
    other_wait, other_run = DurationHistogram(), DurationHistogram()
    other_wait.add_all(engine.other_times.wait)
    other_run.add_all(engine.other_times.run)
    labels = {function.name: name for name, function in own.items()}
    for number, (name, function) in enumerate(list(engine.measured.items()), start=1):
        times = function.times
        assert times is not None
        if name in labels:
            _add_histogram(waits, times.wait, _FUNCTION_EXPONENTS, f'function="{labels[name]}"')
            _add_histogram(runs, times.run, _FUNCTION_EXPONENTS, f'function="{labels[name]}"')
        else:
            other_wait.add_all(times.wait)
            other_run.add_all(times.run)
        if not number % _SLICE:
            await asyncio.sleep(0)
    if any(other_wait.counts()):
        _add_histogram(waits, other_wait, _FUNCTION_EXPONENTS, f'function="{OTHERS}"')
        _add_histogram(runs, other_run, _FUNCTION_EXPONENTS, f'function="{OTHERS}"')
    return [waits, runs]


def _histogram(name: str, help: str, measured: DurationHistogram) -> MetricFamily:
    family = MetricFamily(name, "histogram", help)
    _add_histogram(family, measured, _EXPONENTS)
    return family


def _add_histogram(family: MetricFamily, measured: DurationHistogram, exponents: range, labels: str = "") -> None:
    """Add a histogram of the engine, with fewer buckets."""
    buckets = measured.counts()
    counts: list[int] = []
    begin = 0
    for exponent in exponents:
        counts.append(sum(buckets[begin : exponent + 1]))
        begin = exponent + 1
    counts.append(sum(buckets[begin:]))
    bounds = [2.0**exponent / MICRO for exponent in exponents]
    family.add_histogram(bounds, counts, max(measured.total_seconds, 0.0), labels)
