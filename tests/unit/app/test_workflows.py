"""Workflows of apps, in memory: order, results of parents, failures, cancelling, retrying, and what is refused."""

import asyncio
import functools
from collections.abc import Coroutine, Sequence
from typing import Any

import pytest

from geartrain.app import App, Call, PickleCodec, Proceed, Workflow
from geartrain.app.node import WorkflowNode
from geartrain.app.node_arguments import ParentResult, put_in, take_out
from geartrain.app.workflow import KEPT_FOR_CHILDREN
from geartrain.client.job_events import Completed
from geartrain.errors import (
    ClientError,
    CodecError,
    ExpiredError,
    JobFailedError,
    JobTimeoutError,
    ResultGoneError,
)
from geartrain.model import JobState, Priority
from geartrain.testing import InMemory


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


class Shop:
    """An app whose tasks say what they did."""

    def __init__(self, **options: Any) -> None:
        self.app = app = App("shop", "gearman://127.0.0.1:1", **options)
        self.ran: list[str] = []
        self.broken: set[str] = set()  # tasks that fail

        @app.task
        async def fetch(url: str) -> bytes:
            self.does(f"fetch {url}", "fetch")
            return url.upper().encode()

        @app.task
        def merge(parts: list[bytes], *, separator: str = "") -> str:
            self.does("merge", "merge")
            return separator.join(part.decode() for part in parts)

        @app.task
        async def notify(text: str = "") -> None:
            self.does(f"notify {text}", "notify")

        @app.task
        async def report(parts: Sequence[bytes | JobFailedError], last: str | JobFailedError = "") -> list[str]:
            self.does("report", "report")
            return [part.reason if isinstance(part, JobFailedError) else part.decode() for part in parts] + [
                last.reason if isinstance(last, JobFailedError) else last
            ]

        self.fetch, self.merge, self.notify, self.report = fetch, merge, notify, report

    def does(self, what: str, task: str) -> None:
        self.ran.append(what)
        if task in self.broken or what in self.broken:
            raise ValueError(f"{what} is broken")


@pytest.fixture
def shop() -> Shop:
    return Shop()


def test_results_of_nodes_are_arguments(shop: Shop) -> None:
    async def scenario() -> None:
        async with InMemory(shop.app) as memory:
            async with shop.app.workflow("import") as flow:
                parts = [flow.add(shop.fetch.bind(url)) for url in "abc"]
                separator = flow.add(shop.merge.bind([parts[0]]))
                merged = flow.add(shop.merge.bind(parts, separator=separator))
                flow.add(shop.notify.bind("end"), after=[merged])
                assert memory.submitted == []
            assert await flow.handle.state() == "running"
            assert await flow.handle.progress() == {"queued": 3, "blocked": 3}
            with pytest.raises(JobTimeoutError, match="drain"):
                await flow.handle.wait()
            await memory.drain()
            assert shop.ran == ["fetch a", "fetch b", "fetch c", "merge", "merge", "notify end"]
            assert await flow.handle.result(merged) == "AABAC"
            assert await flow.handle.result(parts, timeout=5) == [b"A", b"B", b"C"]
            assert await flow.handle.result((parts[0], merged)) == (b"A", "AABAC")
            assert (await flow.handle.wait(), await flow.handle.reason()) == ("done", "")
            assert await flow.handle.progress() == {"done": 6}
            assert flow.handle.member(merged).name == "shop.merge"
            memory.assert_submitted(shop.merge, parts, separator=separator)

    run(scenario())


@pytest.mark.parametrize("codec", ["json", "msgpack", "cbor", PickleCodec()])
def test_codecs(codec: Any) -> None:
    shop = Shop(codec=codec)

    async def scenario() -> None:
        async with InMemory(shop.app) as memory:
            chord = await shop.app.chord(map(shop.fetch.bind, "abc"), shop.merge.bind)
            await memory.drain()
            assert await chord.result() == "ABC"

    run(scenario())


def test_shapes(shop: Shop) -> None:
    async def scenario() -> None:
        async with InMemory(shop.app) as memory:
            group = await shop.app.group(map(shop.fetch.bind, "ab"), name="letters")
            chain = await shop.app.chain(
                shop.fetch.bind("c"), lambda part: shop.merge.bind([part, b"d"]), functools.partial(shop.notify.bind)
            )
            chord = await shop.app.chord(
                [shop.fetch.bind(url) for url in "xy"], functools.partial(shop.merge.bind, separator="+")
            )
            await memory.drain()
            assert (group.workflow.name, await group.result(timeout=1)) == ("letters", [b"A", b"B"])
            await chain.result()
            assert "notify Cd" in shop.ran
            assert await chord.result() == "X+Y"

    run(scenario())


def test_without_an_event_loop(shop: Shop) -> None:
    app = shop.app
    with app, InMemory(app) as memory:
        with app.workflow("import") as flow:
            part = flow.add(shop.fetch.bind("a"))
            merged = flow.add(shop.merge.bind([part]))
        group = app.group_sync([shop.fetch.bind("b")])
        chain = app.chain_sync(shop.fetch.bind("c"), lambda part: shop.merge.bind([part]))
        chord = app.chord_sync([shop.fetch.bind("d")], shop.merge.bind)
        same = app.workflow_handle_sync(flow.handle_sync.handle)
        assert (same.state(), same.progress()) == ("running", {"queued": 1, "blocked": 1})
        memory.drain_sync()
        assert flow.handle_sync.result(merged) == "A"
        assert (group.result(), chain.result(), chord.result()) == ([b"B"], "C", "D")
        assert (same.wait(), same.reason(), same.cancel(), same.retry()) == ("done", "", False, False)
        assert flow.handle_sync.member(part).state() == "done"
        assert (flow.handle_sync.name, flow.handle_sync.server) == ("import", "memory")
        assert repr(chord).startswith("<SyncOutputHandle chord ")


async def add_and_raise(flow: Workflow) -> None:
    async with flow:
        flow.add(Shop().fetch.bind("a"))
        raise ZeroDivisionError


def test_nothing_is_submitted_if_the_block_raises(shop: Shop) -> None:
    async def scenario() -> None:
        async with InMemory(shop.app) as memory:
            flow = shop.app.workflow("import")
            with pytest.raises(ZeroDivisionError):
                await add_and_raise(flow)
            assert (memory.submitted, memory.workflows) == ([], [])
            with pytest.raises(ClientError, match="not submitted before the end of its block"):
                _ = flow.handle

    run(scenario())


def test_a_failure_cancels_what_waits_and_retry_runs_it_again(shop: Shop) -> None:
    shop.broken = {"fetch b"}

    async def scenario() -> None:
        async with InMemory(shop.app) as memory:
            async with shop.app.workflow("import") as flow:
                parts = [flow.add(shop.fetch.bind(url)) for url in "ab"]
                merged = flow.add(shop.merge.bind(parts))
                flow.add(shop.notify.bind(merged))
            await memory.drain()
            assert await flow.handle.wait() == "failed"
            failed = flow.handle.member(parts[1])
            assert await flow.handle.reason() == f"job {failed.handle} ended as failed"
            assert await flow.handle.progress() == {"done": 1, "failed": 1, "cancelled": 2}
            with pytest.raises(JobFailedError, match="fetch b is broken"):
                await failed.result()
            with pytest.raises(JobFailedError, match=f"job {failed.handle}, which it waited for, ended as failed"):
                await flow.handle.result(merged)
            shop.broken = set()
            shop.ran.clear()
            assert await flow.handle.retry()
            assert await flow.handle.progress() == {"done": 1, "queued": 1, "blocked": 2}
            await memory.drain()
            assert shop.ran == ["fetch b", "merge", "notify AB"]
            assert (await flow.handle.wait(), await flow.handle.result(merged)) == ("done", "AB")
            assert not await flow.handle.retry()

    run(scenario())


def test_a_retried_attempt_is_no_failure(shop: Shop) -> None:
    attempts: list[int] = []

    @shop.app.task(retries=2, backoff=10)
    async def flaky() -> bytes:
        attempts.append(1)
        if len(attempts) < 3:
            raise OSError("not yet")
        return b"at last"

    async def scenario() -> None:
        async with InMemory(shop.app) as memory:
            chord = await shop.app.chord([flaky.bind()], shop.merge.bind)
            await memory.drain()
            assert await chord.workflow.progress() == {"scheduled": 1, "blocked": 1}
            await memory.drain(forward=True)
            assert await chord.result() == "at last"

    run(scenario())


def test_a_call_that_runs_anyway_gets_errors_for_results(shop: Shop) -> None:
    shop.broken = {"fetch b", "merge"}

    async def scenario() -> None:
        async with InMemory(shop.app) as memory:
            async with shop.app.workflow("import") as flow:
                parts = [flow.add(shop.fetch.bind(url)) for url in "abc"]
                merged = flow.add(shop.merge.bind([parts[0]]))
                reported = flow.add(shop.report.bind(parts, merged), on_failure="run")
            await memory.drain()
            assert await flow.handle.result(reported) == [
                "A", "ValueError: fetch b is broken", "C", "ValueError: merge is broken",
            ]  # fmt: skip
            assert await flow.handle.wait() == "failed"

    run(scenario())


def test_a_parameter_that_does_not_take_errors(shop: Shop) -> None:
    shop.broken = {"fetch"}

    async def scenario() -> None:
        async with InMemory(shop.app) as memory:
            async with shop.app.workflow("import") as flow:
                merged = flow.add(shop.merge.bind([flow.add(shop.fetch.bind("a"))]), on_failure="run")
            await memory.drain()
            with pytest.raises(
                JobFailedError, match=r"'parts' of .*merge does not fit: .*annotate it with `\| JobFailed"
            ):
                await flow.handle.result(merged)

    run(scenario())


def test_cancelling(shop: Shop) -> None:
    async def scenario() -> None:
        async with InMemory(shop.app) as memory:
            async with shop.app.workflow("import") as flow:
                part = flow.add(shop.fetch.bind("a"))
                merged = flow.add(shop.merge.options(delay=60).bind([part]))
                flow.add(shop.notify.bind(merged), on_failure="run")
            await memory.drain()
            assert await flow.handle.progress() == {"done": 1, "scheduled": 1, "blocked": 1}
            assert await flow.handle.cancel()
            assert await flow.handle.wait() == "cancelled"
            assert await flow.handle.progress() == {"done": 1, "cancelled": 2}
            assert (await flow.handle.cancel(), await flow.handle.retry()) == (False, False)
            assert await memory.drain(forward=True) == []

    run(scenario())


def test_cancelling_and_expiring_of_one_job(shop: Shop) -> None:
    async def scenario() -> None:
        async with InMemory(shop.app) as memory:
            async with shop.app.workflow("import") as flow:
                first, second = (flow.add(shop.fetch.options(delay=60, expires=90).bind(url)) for url in "ab")
                merged = flow.add(shop.merge.bind([first]))
                reported = flow.add(shop.report.bind([first, second]), on_failure="run")
            assert await flow.handle.member(first).cancel()
            assert await flow.handle.member(merged).state() == "cancelled"
            memory.clock.advance(100)
            await memory.drain()
            with pytest.raises(ExpiredError):
                await flow.handle.result(second)
            assert await flow.handle.result(reported) == ["cancelled", "expired: no worker was free for it in time", ""]

    run(scenario())


def test_events_of_a_blocked_job_run_all_that_it_waits_for(shop: Shop) -> None:
    async def scenario() -> None:
        async with InMemory(shop.app):
            async with shop.app.workflow("import") as flow:
                merged = flow.add(shop.merge.bind([flow.add(shop.fetch.options(delay=60).bind("a"))]))
            assert [event async for event in flow.handle.member(merged).events()] == [Completed(b'"A"')]

    run(scenario())


def test_options_and_how_long_results_are_kept(shop: Shop) -> None:
    async def scenario() -> None:
        async with InMemory(shop.app) as memory:
            async with shop.app.workflow("import") as flow:
                calls = [
                    shop.fetch.bind("a"),
                    shop.fetch.options(keep_for=60).bind("b"),
                    shop.fetch.options(keep_for=30 * 86_400, priority="low", partition="p").bind("c"),
                ]
                merged = flow.add(shop.merge.bind(list(map(flow.add, calls))))
                flow.add(shop.notify.bind(), after=[merged])
            kept = [job.submission.keep_for for job in memory.submitted]
            assert kept == [KEPT_FOR_CHILDREN, KEPT_FOR_CHILDREN, 30 * 86_400, 0, 0]
            assert [call.keep_for for call in calls] == [0, 60, 30 * 86_400]
            submitted = memory.submitted[2].submission
            assert (submitted.priority, submitted.partition) == (Priority.LOW, b"p")

    run(scenario())


def test_what_is_refused(shop: Shop) -> None:
    other = shop.app.workflow("other").add(shop.fetch.bind("a"))
    flow = shop.app.workflow("import")
    part = flow.add(shop.fetch.bind("a"))
    with pytest.raises(ValueError, match=r"<Node 0 shop.fetch> was not added to workflow 'import'"):
        flow.add(shop.merge.bind([other]))
    with pytest.raises(TypeError, match=r"after is a list of nodes, .* not of int"):
        flow.add(shop.notify.bind(), after=[1])
    with pytest.raises(ValueError, match=r"unique key.*options\(unique=False\)"):
        flow.add(shop.fetch.options(unique="u").bind("a"))
    with pytest.raises(ValueError, match="'cancel' or 'run'"):
        flow.add(shop.fetch.bind("a"), on_failure="panic")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="missing a required argument"):
        shop.fetch.bind()  # type: ignore[call-arg]

    @shop.app.task(codec="cbor")
    async def binary(part: bytes) -> None: ...

    with pytest.raises(
        ValueError, match=r"shop.binary \(codec cbor\) cannot take the result of shop.fetch \(codec json\)"
    ):
        flow.add(binary.bind(part))
    assert len(flow.nodes) == 1


def test_nodes_have_no_value(shop: Shop) -> None:
    flow = shop.app.workflow("import")
    part = flow.add(shop.fetch.bind("a"))
    with pytest.raises(AttributeError, match="has no 'decode': a node stands for a result that is not there"):
        part.decode()
    with pytest.raises(TypeError, match="has no text"):
        f"{part}"  # type: ignore[str-bytes-safe]
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(part)
    with pytest.raises(
        CodecError, match=r"<Node 0 shop.fetch> cannot be sent: a node is an argument of a call in the same"
    ):
        shop.fetch.options(unique=True).bind(part)  # type: ignore[arg-type]


@pytest.mark.parametrize("codec", ["json", PickleCodec()])
def test_nodes_elsewhere_are_refused(codec: Any) -> None:
    shop = Shop(codec=codec)

    @shop.app.task
    async def deep(parts: dict[str, bytes]) -> None: ...

    async def scenario() -> None:
        async with InMemory(shop.app) as memory:
            flow = shop.app.workflow("import")
            part = flow.add(shop.fetch.bind("a"))
            flow.add(deep.bind({"a": part}))
            with pytest.raises(
                CodecError, match=r"argument 'parts' of shop.deep: .*<Node 0 shop.fetch> cannot be sent"
            ):
                await flow.submit()
            with pytest.raises(CodecError, match="cannot be sent"):
                await shop.merge.submit([part])
            assert memory.submitted == []

    run(scenario())


def test_handles_refuse_what_is_not_theirs(shop: Shop) -> None:
    async def scenario() -> None:
        async with InMemory(shop.app):
            with pytest.raises(ValueError, match="workflow 'empty' has no calls"):
                async with shop.app.workflow("empty"):
                    pass
            async with shop.app.workflow("import") as flow:
                flow.add(shop.fetch.bind("a"))
            other = shop.app.workflow("other").add(shop.fetch.bind("a"))
            with pytest.raises(ValueError, match="was not added to <WorkflowHandle import 'memory:1'>"):
                await flow.handle.result(other)
            with pytest.raises(TypeError, match="b'A' is not a node"):
                await flow.handle.result(b"A")
            with pytest.raises(ClientError, match="is submitted; nothing can be added"):
                flow.add(shop.fetch.bind("b"))
            with pytest.raises(ClientError, match="submitted already"):
                await flow.submit()
            assert await shop.app.workflow_handle("memory:1").state() == "running"
            nowhere = shop.app.workflow_handle("memory:99")
            with pytest.raises(ResultGoneError, match="no workflow memory:99"):
                await nowhere.wait()
            with pytest.raises(ResultGoneError):
                await nowhere.state()
            assert (await nowhere.cancel(), await nowhere.retry(), nowhere.handle) == (False, False, "memory:99")

    run(scenario())


def test_middleware_sees_every_call(shop: Shop) -> None:
    handles: list[str] = []

    @shop.app.around_submit
    async def number(call: Call[Any], proceed: Proceed) -> Any:
        call.meta["number"] = call.place
        handle = await proceed()
        handles.append(handle.handle)
        return handle

    async def scenario() -> None:
        async with InMemory(shop.app) as memory:
            chord = await shop.app.chord(map(shop.fetch.bind, "ab"), shop.merge.bind)
            assert [job.submission.meta for job in memory.submitted] == [{"number": 0}, {"number": 1}, {"number": 2}]
            assert sorted(handles) == ["memory:2", "memory:3", "memory:4"]
            await memory.drain()
            assert await chord.result() == "AB"

    run(scenario())


def test_middleware_that_refuses_a_call_stops_the_workflow(shop: Shop) -> None:
    refusals: list[Exception | None] = [PermissionError("not today"), None]

    @shop.app.around_submit
    async def refuse(call: Call[Any], proceed: Proceed) -> Any:
        if call.task is not shop.merge:
            return await proceed()
        refusal = refusals.pop(0)
        if refusal is not None:
            raise refusal
        return None

    async def scenario() -> None:
        async with InMemory(shop.app) as memory:
            with pytest.raises(PermissionError, match="not today"):
                await shop.app.chord(map(shop.fetch.bind, "ab"), shop.merge.bind)
            with pytest.raises(ClientError, match=r"middleware did not proceed with shop.merge"):
                await shop.app.chord(map(shop.fetch.bind, "ab"), shop.merge.bind)
            assert memory.submitted == []

    run(scenario())


def test_errors_of_the_submission_reach_the_middleware_and_the_program(shop: Shop) -> None:
    seen: list[str] = []

    @shop.app.around_submit
    async def note(call: Call[Any], proceed: Proceed) -> Any:
        try:
            return await proceed()
        except CodecError:
            seen.append(call.task.name)
            raise

    @shop.app.task
    async def odd(value: object) -> None: ...

    async def scenario() -> None:
        async with InMemory(shop.app):
            with pytest.raises(CodecError, match="argument 'value'"):
                await shop.app.group([odd.bind(object()), odd.bind(1)])
            assert seen == ["shop.odd", "shop.odd"]

    run(scenario())


def test_how_payloads_refer_to_results(shop: Shop) -> None:
    flow = shop.app.workflow("import")
    first, second = (flow.add(shop.fetch.bind(url)) for url in "ab")
    args, kwargs, results = take_out((1, first, [first, second], [b"x", second]), {"parts": (first,)})
    assert (args, kwargs) == ([1, None, None, [b"x", None]], {"parts": None})
    assert results == [
        ParentResult([1], 0), ParentResult([2], [0, 1]), ParentResult([3, 1], 1), ParentResult(["parts"], [0]),
    ]  # fmt: skip
    assert put_in(args, kwargs, results, {0: "A", 1: "B"}) == ([1, "A", ["A", "B"], [b"x", "B"]], {"parts": ["A"]})
    merged: Any = flow.add(shop.merge.bind([first, second]))
    assert isinstance(merged, WorkflowNode)
    payload = merged.call.payload()
    assert b'"v":2,"args":[null],' in payload
    assert payload.endswith(b'"place":2,"results":[{"at":[0],"of":[0,1]}]}')


def test_a_thousand_jobs(shop: Shop) -> None:
    @shop.app.task
    async def one() -> int:
        return 1

    @shop.app.task
    async def total(numbers: list[int]) -> int:
        return sum(numbers)

    async def scenario() -> None:
        async with InMemory(shop.app) as memory:
            chord = await shop.app.chord((one.bind() for _ in range(1000)), total.bind)
            ran = await memory.drain()
            assert (len(ran), ran[-1].state, await chord.result()) == (1001, JobState.DONE, 1000)

    run(scenario())
