"""What operators see of a whole cluster: how the answers of its servers are put together, by verb."""

import bisect
import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from geartrain import jsonbytes
from geartrain.admin import cluster_pages, views
from geartrain.admin.base import page_limit
from geartrain.admin.cluster_calls import CHANGE_SECONDS, SECONDS, Arguments, ClusterCall, Merge, ServerAnswer
from geartrain.admin.cluster_pages import PagePart, Places
from geartrain.admin.jobs import BULK_MOST, page_size
from geartrain.admin.other_admins import NoAnswerError
from geartrain.admin.verbs import SORTS
from geartrain.errors import AdminError
from geartrain.job_query import JobQuery, page_position

S = TypeVar("S", views.Sample, views.FunctionSample)

_STARTS: Final = 32  # of servers, whose records a page has; older records follow on later pages
_ENDED: Final = "r"  # before the number of the node, in the name of a list of jobs that have ended
_GROUPS: Final = 200
_FUNCTIONS_SHOWN: Final = 10


# Totals


async def _overview(call: ClusterCall, arguments: Arguments) -> views.Overview:
    overview = merged_overview([part.value for part in await call.gather("overview")])
    return msgspec.structs.replace(overview, unanswered=call.unanswered)


def merged_overview(parts: Sequence[views.Overview]) -> views.Overview:
    """Counts are added. Of latencies, which cannot be, the largest is shown; the rest is of the first."""
    oldest = [part.oldest for part in parts if part.oldest is not None]
    added = {name: sum(getattr(part, name) for part in parts) for name in _ADDED}
    return msgspec.structs.replace(
        parts[0],
        **added,
        functions=max(part.functions for part in parts),
        oldest=min(oldest, default=None),
        wait=_largest([part.wait for part in parts]),
        run=_largest([part.run for part in parts]),
    )


_ADDED: Final = (
    "queued", "running", "scheduled", "blocked", "dead", "queued_bytes", "workers", "connections", "submitted",
    "completed", "failed", "submitted_rate", "completed_rate",
)  # fmt: skip


def _largest(parts: Sequence[views.Latency]) -> views.Latency:
    return views.Latency(*(_maximum(getattr(part, name) for part in parts) for name in ("p50", "p95", "p99")))


def _maximum(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


async def _history(call: ClusterCall, arguments: Arguments) -> list[views.Sample]:
    first, *others = [part.value for part in await call.gather("history", arguments)]
    return _add_samples(first, others, 1.0, _add_sample)


def _add_samples(first: list[S], others: Iterable[list[S]], interval: float, add: Callable[[S, S], S]) -> list[S]:
    """Add to each sample those that the other servers took at about the same time."""
    for other in others:
        times = [sample.at for sample in other]
        merged = []
        for sample in first:
            place = bisect.bisect_left(times, sample.at - interval / 2)
            near = place < len(times) and times[place] < sample.at + interval / 2
            merged.append(add(sample, other[place]) if near else sample)
        first = merged
    return first


_RATES: Final = ("submitted", "completed", "failed", "queued", "running")


def _add_sample(one: S, other: S) -> S:
    return msgspec.structs.replace(one, **{name: getattr(one, name) + getattr(other, name) for name in _RATES})


# Functions


async def _functions(call: ClusterCall, arguments: Arguments) -> views.Page[views.FunctionView]:
    sort = arguments.get("sort", "name")
    if sort not in SORTS:
        raise AdminError("bad-request", f"unknown sort order {sort!r}; the orders are {', '.join(SORTS)}")
    start, limit = page_position(arguments.get("after", "")), page_limit(arguments.get("limit", 100))
    parts = await call.gather("all_functions", {"search": arguments.get("search", "")})
    by_name: dict[bytes, list[views.FunctionView]] = {}
    for part in parts:
        for function in part.value:
            by_name.setdefault(jsonbytes.decode(function.name), []).append(function)
    functions = sorted(map(merged_function, by_name.values()), key=lambda function: _sort_key(function, sort))
    more = len(functions) > start + limit
    return views.Page(functions[start : start + limit], str(start + limit) if more else "", len(functions))


def merged_function(parts: Sequence[views.FunctionView]) -> views.FunctionView:
    """A function of several servers. Its settings are the same at all of them."""
    if len(parts) == 1:
        return parts[0]
    oldest = [part.oldest for part in parts if part.oldest is not None]
    added = {name: sum(getattr(part, name) for part in parts) for name in _FUNCTION_COUNTS}
    return msgspec.structs.replace(parts[0], **added, oldest=min(oldest, default=None))


_FUNCTION_COUNTS: Final = (
    "queued", "running", "scheduled", "blocked", "dead", "workers", "submitted", "completed", "failed", "partitions",
)  # fmt: skip


def _sort_key(function: views.FunctionView, sort: str) -> tuple[float, bytes]:
    name = jsonbytes.decode(function.name)
    if sort == "oldest":
        return (function.oldest or float("inf"), name)
    return (0.0 if sort == "name" else -getattr(function, sort), name)


async def _function(call: ClusterCall, arguments: Arguments) -> views.FunctionView:
    return merged_function([part.value for part in await call.gather("function", arguments)])


async def _function_history(call: ClusterCall, arguments: Arguments) -> views.FunctionHistoryView:
    parts: list[views.FunctionHistoryView] = [part.value for part in await call.gather("function_history", arguments)]
    first, *others = sorted(parts, key=lambda part: not part.measured)
    samples = [part.samples for part in others if part.measured]
    return msgspec.structs.replace(
        first,
        samples=_add_samples(first.samples, samples, first.interval, _add_function_sample),
        wait=_largest([part.wait for part in parts]),
        run=_largest([part.run for part in parts]),
    )


_TIMES: Final = ("wait_p50", "wait_p95", "run_p50", "run_p95")


def _add_function_sample(one: views.FunctionSample, other: views.FunctionSample) -> views.FunctionSample:
    times = {name: _maximum((getattr(one, name), getattr(other, name))) for name in _TIMES}
    return msgspec.structs.replace(_add_sample(one, other), **times)


async def _drop(call: ClusterCall, arguments: Arguments) -> None:
    await call.gather("drop", arguments)


# Lists


async def _workers(call: ClusterCall, arguments: Arguments) -> views.Page[views.WorkerView]:
    places = cluster_pages.read_places(arguments.get("after", ""))
    own = {name: value for name, value in arguments.items() if name != "after"}
    limit = page_limit(arguments.get("limit", 100))
    starts = {node: _start(places, str(node)) for node in (call.others.node, *call.others.names())}
    asked = {node: {**own, "after": str(start) if start else ""} for node, start in starts.items() if start is not None}
    parts = await call.gather("workers", {**{node: {**own, "limit": 1} for node in starts}, **asked})
    lists = [
        PagePart.of(str(part.node), starts[part.node] or 0, _with_server(part))
        for part in parts
        if starts[part.node] is not None
    ]
    items, after = cluster_pages.merge_lists(lists, lambda worker: (worker.since, worker.server, worker.id), limit)
    return views.Page(items, _after(call, after, starts), _total(parts))


async def _jobs(call: ClusterCall, arguments: Arguments) -> views.Page[views.JobView]:
    query: JobQuery = arguments.get("query") or JobQuery()
    places = cluster_pages.read_places(query.places)
    limit = page_size(query)
    starts = {node: _start(places, str(node)) for node in (call.others.node, *call.others.names())}
    # A list that has ended is asked for its total alone, which every page has.
    asked = {node: {"query": _from(query, 1 if start is None else start)} for node, start in starts.items()}
    parts = await call.gather("live_jobs", asked)
    lists = [PagePart.of(str(part.node), starts[part.node] or 0, _with_server(part)) for part in parts]
    lists = [part for part in lists if starts[int(part.list)] is not None]
    # Those that have ended come last: jobs that end meanwhile are then found among them.
    lists += [
        PagePart.of(
            _ENDED + str(node), start, await call.own("ended_jobs", {"query": _of_start(call, query, node, start)})
        )
        for node, start in (await _ended_starts(call, places)).items()
    ]
    ended = {job.id for part in lists if part.list.startswith(_ENDED) for job in part.items}
    lists = [
        part
        if part.list.startswith(_ENDED)
        else part._replace(items=[job for job in part.items if job.id not in ended])
        for part in lists
    ]
    items, after = cluster_pages.merge_lists(lists, lambda job: (-job.submitted_at, -job.id), limit)
    return views.Page(items, _after(call, after, starts), _total(parts))


def _from(query: JobQuery, below: int) -> JobQuery:
    return dataclasses.replace(query, below=below, places="")


def _of_start(call: ClusterCall, query: JobQuery, node: int, below: int) -> JobQuery:
    """The query for records of one start of a server: their ids are in the order of their submission."""
    bits = call.others.node_bits
    return dataclasses.replace(_from(query, below or (node + 1) << bits), least=node << bits)


async def _ended_starts(call: ClusterCall, places: Places | None) -> dict[int, int]:
    """The starts of servers that have records, and from where on they are shown."""
    if places is not None:
        names = [name for name in places if name.startswith(_ENDED) and name[1:].isdecimal()]
        return {int(name[1:]): places[name] for name in names}
    starts: dict[int, int] = {}
    below = 0
    while len(starts) < _STARTS and (id := await call.own("newest_record_id", {"below": below})):
        node = id >> call.others.node_bits
        starts[node] = 0
        below = node << call.others.node_bits
        if not below:
            break
    return starts


def _start(places: Places | None, name: str) -> int | None:
    """The place in a list; None if it has ended."""
    return 0 if places is None else places.get(name)


def _after(call: ClusterCall, places: Places, starts: Mapping[int, int | None]) -> str:
    """`after` of a page. Servers that have not answered stay where they are, if there is another page."""
    names = {name: node for node, name in call.others.names().items()}
    waiting = {str(names[name]): starts[names[name]] for name in call.unanswered if name in names}
    kept = {name: start for name, start in waiting.items() if start is not None}
    return cluster_pages.write_places({**places, **kept} if places else {})


def _with_server(part: ServerAnswer) -> views.Page[Any]:
    page: views.Page[Any] = part.value
    items = [msgspec.structs.replace(item, server=part.name) for item in page.items]
    return views.Page(items, page.after, page.total)


def _total(parts: Sequence[ServerAnswer]) -> int | None:
    totals = [part.value.total for part in parts]
    return None if None in totals else sum(totals)


# Failures and bulk actions


async def _failures(call: ClusterCall, arguments: Arguments) -> views.FailureGroups:
    query: JobQuery = arguments.get("query") or JobQuery()
    # Every server can read what failed; what is dead is in the memory of its home.
    return _merged_failures([part.value for part in await call.gather("dead_groups", {"query": query}, own="failures")])


def _merged_failures(parts: Sequence[views.FailureGroups]) -> views.FailureGroups:
    by_reason: dict[str, list[views.FailureGroup]] = {}
    for group in itertools.chain.from_iterable(part.groups for part in parts):
        by_reason.setdefault(group.reason, []).append(group)
    groups = sorted(
        map(_merged_group, by_reason.values()), key=lambda group: (-group.failed - group.dead, group.reason)
    )
    left_out = sum(group.failed + group.dead for group in groups[_GROUPS:])
    return views.FailureGroups(
        groups[:_GROUPS],
        sum(part.scanned for part in parts),
        sum(part.others for part in parts) + left_out,
        any(part.more for part in parts),
    )


def _merged_group(groups: Sequence[views.FailureGroup]) -> views.FailureGroup:
    newest = max(groups, key=lambda group: group.last_at)
    functions = list(dict.fromkeys(itertools.chain.from_iterable(group.functions for group in groups)))
    return msgspec.structs.replace(
        newest,
        failed=sum(group.failed for group in groups),
        dead=sum(group.dead for group in groups),
        functions=functions[:_FUNCTIONS_SHOWN],
        function_count=max(len(functions), *(group.function_count for group in groups)),
        first_at=min(group.first_at for group in groups),
    )


async def _bulk(call: ClusterCall, arguments: Arguments) -> views.BulkReport:
    parts = await call.gather("bulk_living", arguments, seconds=CHANGE_SECONDS)
    reports: list[views.BulkReport] = [part.value for part in parts]
    if not any(report.more for report in reports):
        reports.append(await _bulk_failed(call, arguments, sum(report.done + report.refused for report in reports)))
    return views.BulkReport(
        sum(report.done for report in reports),
        sum(report.refused for report in reports),
        any(report.more for report in reports),
    )


async def _bulk_failed(call: ClusterCall, arguments: Arguments, used: int) -> views.BulkReport:
    """Failed jobs are in the store. Who retries one must be its home; deleting needs no home."""
    query: JobQuery = arguments.get("filter") or JobQuery()
    most = max(min(query.limit or BULK_MOST, BULK_MOST) - used, 0)
    if arguments["action"] != "retry":
        report: views.BulkReport = await call.own("bulk_failed", {**arguments, "filter": query, "most": most})
        return report
    found: list[tuple[int, bytes]] = await call.own("failed_handles", {"filter": query, "most": most + 1})
    by_home: dict[int, list[bytes]] = {}
    for id, handle in found[:most]:
        by_home.setdefault(_home(call, id), []).append(handle)
    done = 0
    for node, handles in by_home.items():
        done += await _retry_at(call, node, handles)
    return views.BulkReport(done, len(found[:most]) - done, len(found) > most)


async def _retry_at(call: ClusterCall, node: int, handles: list[bytes]) -> int:
    if node == call.others.node:
        retried: int = await call.own("retry_failed", {"handles": handles})
        return retried
    try:
        retried = await call.ask(node, "retry_failed", {"handles": handles}, CHANGE_SECONDS)
    except NoAnswerError:
        call.unanswered.append(call.others.names().get(node, str(node)))
        return 0
    return retried


def _home(call: ClusterCall, id: int) -> int:
    node = id >> call.others.node_bits
    return node if node in call.others.names() else call.others.node


# Servers


async def _nodes(call: ClusterCall, arguments: Arguments) -> list[views.NodeView]:
    listed: list[views.NodeView] = await call.own("nodes", {})
    parts = await call.gather("own_node", seconds=SECONDS)
    answered = {part.node: part.value for part in parts}
    return [_node(call, node, answered.get(node.node)) for node in listed]


def _node(call: ClusterCall, listed: views.NodeView, own: views.NodeView | None) -> views.NodeView:
    """A server as the store has it, with what it says of itself."""
    if own is not None:
        listed = msgspec.structs.replace(
            listed,
            lease_left=own.lease_left,
            jobs=own.jobs,
            lent=own.lent,
            borrowed=own.borrowed,
            workers=own.workers,
        )
    return msgspec.structs.replace(listed, round_trip=call.others.round_trip(listed.node))


MERGES: Final[Mapping[str, Merge]] = {
    "overview": _overview,
    "history": _history,
    "functions": _functions,
    "function": _function,
    "function_history": _function_history,
    "drop": _drop,
    "workers": _workers,
    "jobs": _jobs,
    "failures": _failures,
    "bulk": _bulk,
    "nodes": _nodes,
}

# Methods of `Admin` that one server asks of another.
PARTS: Final = frozenset(
    {
        "overview",
        "history",
        "all_functions",
        "function",
        "function_history",
        "drop",
        "workers",
        "live_jobs",
        "dead_groups",
        "bulk_living",
        "retry_failed",
        "own_node",
        "see_settings",
        "function_of_named_job",
    }
)
