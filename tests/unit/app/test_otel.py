"""Spans and metrics of tasks, with the real SDK and its exporters in memory."""

import asyncio
import importlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from geartrain.app import App, Call, Depends, GiveUp, Middleware, Proceed, Retry, Running, current_task
from geartrain.app.runner import TaskRunner
from geartrain.app.threads import DaemonThreads
from geartrain.errors import CodecError, JobFailedError
from geartrain.otel import Metrics, Tracing
from geartrain.testing import InMemory


class Spans:
    """What an app exported, by the name of the span."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = self.provider.get_tracer("test")

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self._exporter.get_finished_spans() if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        [span] = self.named(name)
        return span


@pytest.fixture
def spans(app: App) -> Spans:
    spans = Spans()
    app.add_middleware(Tracing(spans.provider))
    return spans


@pytest.fixture
def reader(app: App) -> Iterator[InMemoryMetricReader]:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    app.add_middleware(Metrics(provider))
    yield reader
    provider.shutdown()


def points(reader: InMemoryMetricReader) -> dict[str, list[Any]]:
    """The data points of every metric, by its name."""
    data = reader.get_metrics_data()
    assert data is not None
    [resource] = data.resource_metrics
    return {metric.name: list(metric.data.data_points) for scope in resource.scope_metrics for metric in scope.metrics}


def parent(span: ReadableSpan) -> int:
    assert span.parent is not None
    return span.parent.span_id


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_run_is_a_child_of_its_submission_and_linked_to_it(app: App, spans: Spans) -> None:
    @app.task
    async def greet(name: str) -> str:
        with spans.tracer.start_as_current_span("inside"):
            return f"Hello, {name}"

    with app, InMemory(app) as memory, spans.tracer.start_as_current_span("request") as request:
        handle = greet.submit_sync("Ada")
        memory.drain_sync()
    submitted, ran, inside = spans.one("submit shop.greet"), spans.one("run shop.greet"), spans.one("inside")
    assert (submitted.kind, ran.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert parent(submitted) == request.get_span_context().span_id
    assert parent(ran) == submitted.context.span_id
    assert [link.context.span_id for link in ran.links] == [submitted.context.span_id]
    assert parent(inside) == ran.context.span_id
    assert {span.context.trace_id for span in (submitted, ran, inside)} == {request.get_span_context().trace_id}
    assert attributes(submitted) == {
        "messaging.system": "geartrain",
        "messaging.operation.name": "submit",
        "messaging.operation.type": "send",
        "messaging.destination.name": "shop.greet",
        "messaging.message.conversation_id": handle.id,
        "messaging.message.id": handle.handle,
    }
    assert attributes(ran) == {
        "messaging.system": "geartrain",
        "messaging.operation.name": "run",
        "messaging.operation.type": "process",
        "messaging.destination.name": "shop.greet",
        "messaging.message.conversation_id": handle.id,
        "messaging.message.id": handle.handle,
        "geartrain.task.attempt": 1,
        "geartrain.task.outcome": "done",
    }


def test_context_reaches_threads_and_dependencies(app: App, spans: Spans) -> None:
    def current() -> int:
        return trace.get_current_span().get_span_context().span_id

    @app.task
    def plain(given: int = Depends(current)) -> tuple[int, int, str]:
        return given, current(), str(baggage.get_baggage("tenant"))

    with app, InMemory(app):
        token = context.attach(baggage.set_baggage("tenant", "ada"))
        try:
            result = plain.call_sync()
        finally:
            context.detach(token)
    ran = spans.one("run shop.plain").context.span_id
    assert result == (ran, ran, "ada")


def test_each_attempt_is_a_span_with_its_error(app: App, spans: Spans) -> None:
    @app.task(retries=2, backoff=0, retry_on=ConnectionError)
    async def shaky() -> None:
        raise [Retry("busy"), ConnectionError("cut"), ValueError("wrong")][current_task().attempt - 1]

    with app, InMemory(app) as memory:
        shaky.submit_sync()
        memory.drain_sync()
    submitted, runs = spans.one("submit shop.shaky"), spans.named("run shop.shaky")
    assert {parent(span) for span in runs} == {submitted.context.span_id}
    assert [[link.context.span_id for link in span.links] for span in runs] == [[submitted.context.span_id]] * 3
    facts = [(attributes(span)["geartrain.task.attempt"], attributes(span)["geartrain.task.outcome"]) for span in runs]
    assert facts == [(1, "retry"), (2, "retry"), (3, "failed")]
    assert [span.status.status_code for span in runs] == [StatusCode.UNSET, StatusCode.ERROR, StatusCode.ERROR]
    assert [attributes(span).get("error.type") for span in runs] == [None, "ConnectionError", "ValueError"]
    assert [event.name for span in runs for event in span.events] == ["exception", "exception"]
    assert runs[2].status.description == "ValueError: wrong"


@pytest.mark.parametrize("error", [GiveUp("closed"), Retry("busy")], ids=["give up", "no attempt left"])
def test_last_attempt_that_fails_is_an_error(app: App, spans: Spans, error: Exception) -> None:
    @app.task
    async def shaky() -> None:
        raise error

    with app, InMemory(app) as memory:
        shaky.submit_sync()
        memory.drain_sync()
    ran = spans.one("run shop.shaky")
    assert (ran.status.status_code, ran.status.description) == (StatusCode.ERROR, str(error))
    assert attributes(ran)["error.type"] == f"geartrain.app.retry.{type(error).__name__}"


def test_submission_that_fails_is_an_error(app: App, spans: Spans) -> None:
    class Refuse(Middleware):
        async def around_submit(self, call: Call[Any], proceed: Proceed) -> Any:
            raise PermissionError("not today")

    app.add_middleware(Refuse())

    @app.task
    async def greet() -> None: ...

    with app, InMemory(app), pytest.raises(PermissionError):
        greet.submit_sync()
    submitted = spans.one("submit shop.greet")
    assert submitted.status.description == "PermissionError: not today"
    assert attributes(submitted)["error.type"] == "PermissionError"


def test_call_without_context_begins_a_trace_even_in_a_worker_within_a_span(app: App, spans: Spans) -> None:
    @app.cron("* * * * *")
    async def tidy() -> None: ...

    async def scenario() -> None:
        async with app, InMemory(app) as memory:
            with spans.tracer.start_as_current_span("main of the worker"):
                memory.clock.advance(60)
                await memory.drain()

    asyncio.run(scenario())
    ran = spans.one("run shop.tidy")
    assert ran.parent is None
    assert not ran.links


@pytest.mark.parametrize("meta", ['{"traceparent": 7}', '{"traceparent": "x"}', '{"tracestate": ["a", 1]}'])
def test_wrong_context_does_no_harm(app: App, spans: Spans, meta: str) -> None:
    @app.task
    async def greet() -> str:
        return "Hello"

    result = asyncio.run(run_payload(app, f'{{"v": 1, "args": [], "meta": {meta}}}'))
    assert result == b'"Hello"'
    assert spans.one("run shop.greet").parent is None


async def run_payload(app: App, payload: str) -> bytes:
    """The result of the app's only task for a payload that some other program sent."""
    threads = DaemonThreads("test")

    class Job:
        handle, attempt, revoked = b"H:test:1", 1, False

        def __init__(self) -> None:
            self.payload = payload.encode()

    [task] = app.tasks.values()
    attempt = await TaskRunner(app.around_runs, threads).run(task, Job())  # type: ignore[arg-type]
    threads.close()
    assert attempt.error is None
    return attempt.result


def test_cancelled_attempt_is_no_error(app: App, spans: Spans, reader: InMemoryMetricReader) -> None:
    begun = asyncio.Event()

    @app.task
    async def slow() -> None:
        begun.set()
        await asyncio.Event().wait()

    async def scenario() -> None:
        running = asyncio.create_task(run_payload(app, '{"v": 1, "args": []}'))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(scenario())
    ran = spans.one("run shop.slow")
    assert attributes(ran)["geartrain.task.outcome"] == "cancelled"
    assert ran.status.status_code is StatusCode.UNSET
    found = points(reader)
    [running] = found["geartrain.task.running"]
    assert running.value == 0
    assert [point.attributes["geartrain.task.outcome"] for point in found["geartrain.task.attempts"]] == ["cancelled"]


def test_traceback_that_is_kept_has_no_frames_of_the_library(app: App, spans: Spans) -> None:
    @app.task
    async def shaky() -> None:
        raise ValueError("wrong")

    async def scenario() -> str:
        async with app, InMemory(app) as memory:
            handle = await shaky.submit()
            await memory.drain()
            return await handle.traceback()

    files = [line.split('"')[1] for line in asyncio.run(scenario()).splitlines() if line.startswith("  File")]
    assert files == [__file__]


def test_metrics(app: App, reader: InMemoryMetricReader) -> None:
    at_work: list[int] = []

    @app.task(retries=1, backoff=0)
    def half(number: int) -> int:
        [running] = points(reader)["geartrain.task.running"]
        at_work.append(running.value)
        if number % 2 and current_task().attempt == 1:
            raise ValueError("odd")
        if number == 3:
            raise GiveUp("three")
        return number // 2

    with app, InMemory(app) as memory:
        for number in (1, 2, 3):
            half.submit_sync(number)
        memory.drain_sync()
    found = points(reader)
    common = {
        "messaging.system": "geartrain",
        "messaging.operation.name": "run",
        "messaging.operation.type": "process",
        "messaging.destination.name": "shop.half",
    }
    attempts = {
        (point.attributes["geartrain.task.outcome"], point.attributes.get("error.type")): point.value
        for point in found["geartrain.task.attempts"]
    }
    assert attempts == {("done", None): 2, ("retry", "ValueError"): 2, ("failed", "geartrain.app.retry.GiveUp"): 1}
    assert at_work == [1] * 5
    [running] = found["geartrain.task.running"]
    assert (running.value, dict(running.attributes)) == (0, common)
    [sent] = found["messaging.client.sent.messages"]
    assert sent.value == 3
    durations = {point.attributes.get("error.type"): point.count for point in found["messaging.process.duration"]}
    assert durations == {None: 2, "ValueError": 2, "geartrain.app.retry.GiveUp": 1}
    assert found["messaging.process.duration"][0].explicit_bounds[-1] == 1800


def test_submissions_that_fail_are_counted(app: App, reader: InMemoryMetricReader) -> None:
    @app.task
    async def greet(count: object) -> None: ...

    with app, InMemory(app), pytest.raises(CodecError, match="argument 'count'"):
        greet.submit_sync(object())
    [sent] = points(reader)["messaging.client.sent.messages"]
    assert sent.attributes["error.type"] == "geartrain.errors.CodecError"


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "geartrain.otel")
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(ImportError, match=r"pip install 'geartrain\[otel\]'"):
        importlib.import_module("geartrain.otel")


def test_will_retry_says_what_the_policy_does(app: App) -> None:
    seen: list[tuple[int, bool]] = []

    class Watch(Middleware):
        async def around_run(self, running: Running, proceed: Proceed) -> Any:
            try:
                return await proceed()
            except Exception as error:
                seen.append((running.attempt, running.will_retry(error)))
                raise

    app.add_middleware(Watch())
    assert not app.around_submits  # a method that is not overridden costs nothing

    @app.task(retries=1, backoff=0)
    async def shaky() -> None:
        raise ValueError("wrong")

    with app, InMemory(app), pytest.raises(JobFailedError):
        shaky.call_sync()
    assert seen == [(1, True), (2, False)]
