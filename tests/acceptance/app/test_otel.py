"""Traces over a real server: from the request that submits a task to the attempts in a worker."""

import asyncio
import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import propagate, trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from geartrain import App, AsyncClient, outbox
from geartrain.app import current_task
from geartrain.errors import JobFailedError
from geartrain.otel import Tracing
from tests.support import apps, process, serving

# A worker that prints what its exporter has when it stops.
WORKER = """
import json
from opentelemetry import propagate, trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from geartrain import App
from geartrain.otel import Tracing

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
app = App({name!r}, {url!r})
app.add_middleware(Tracing(provider))

@app.task
def plain() -> str:
    return format(trace.get_current_span().get_span_context().span_id, "x")

@app.on_shutdown
def show() -> None:
    for span in exporter.get_finished_spans():
        print(json.dumps([span.name, span.context.trace_id, span.context.span_id, span.parent.span_id]), flush=True)
"""


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(app: App, exporter: InMemorySpanExporter) -> TracerProvider:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    app.add_middleware(Tracing(provider))
    return provider


def parent(span: ReadableSpan) -> int:
    assert span.parent is not None
    return span.parent.span_id


def test_worker_process_continues_the_trace_of_the_submitter(
    app: App, server: serving.ServerProcess, provider: TracerProvider, exporter: InMemorySpanExporter, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text(WORKER.format(name=app.name, url=server.url))

    @app.task
    def plain() -> str:
        raise AssertionError("this process does not work")

    async def request() -> str:
        async with app:
            with provider.get_tracer("web").start_as_current_span("request"):
                return await (await plain.submit()).result(apps.SECONDS)

    worker = process.Process([str(serving.installed_command()), "work", "shop:app"], tmp_path)
    try:
        inside = asyncio.run(request())
        worker.process.terminate()
        assert worker.wait() == 0
    finally:
        worker.kill()
    submitted, requested = exporter.get_finished_spans()
    [ran] = map(json.loads, worker.lines)
    assert parent(submitted) == requested.context.span_id
    assert ran[0] == f"run {app.name}.plain"
    assert ran[1] == submitted.context.trace_id == requested.context.trace_id
    assert ran[3] == submitted.context.span_id
    assert inside == format(ran[2], "x")


def test_attempts_on_the_server_are_spans_of_the_same_trace(
    app: App, server: serving.ServerProcess, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    @app.task(retries=2, backoff=0)
    def shaky() -> str:
        raise ConnectionError(f"attempt {current_task().attempt}")

    async def scenario() -> None:
        async with apps.working(app):
            handle = await shaky.submit()
            with pytest.raises(JobFailedError):
                await handle.result(apps.SECONDS)

    asyncio.run(scenario())
    submitted, *runs = exporter.get_finished_spans()
    assert {parent(span) for span in runs} == {submitted.context.span_id}
    outcomes = [dict(span.attributes or {})["geartrain.task.outcome"] for span in runs]
    assert outcomes == ["retry", "retry", "failed"]
    assert {span.status.status_code for span in runs} == {StatusCode.ERROR}
    descriptions = [span.status.description for span in runs]
    assert descriptions == [f"ConnectionError: attempt {number}" for number in (1, 2, 3)]
    sent = dict(submitted.attributes or {})
    assert (sent["server.address"], sent["server.port"]) == (serving.HOST, server.port)


def test_many_submissions_share_the_trace_of_their_request(
    app: App, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    @app.task
    async def double(number: int) -> int:
        return 2 * number

    async def scenario() -> None:
        async with apps.working(app):
            with provider.get_tracer("web").start_as_current_span("request"):
                handles = await app.submit_many(double.bind(number) for number in range(3))
            assert [await handle.result(apps.SECONDS) for handle in handles] == [0, 2, 4]

    asyncio.run(scenario())
    spans = exporter.get_finished_spans()
    assert len({span.context.trace_id for span in spans}) == 1
    submitted = {span.context.span_id for span in spans if span.name.startswith("submit ")}
    assert {parent(span) for span in spans if span.name.startswith("run ")} == submitted
    assert len(submitted) == 3


def test_plain_client_can_send_the_context(
    app: App, server: serving.ServerProcess, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    @app.task
    async def current() -> int:
        return trace.get_current_span().get_span_context().trace_id

    traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    payload: dict[str, Any] = {"v": 1, "args": [], "meta": {"traceparent": traceparent}}

    async def scenario() -> bytes:
        async with apps.working(app), AsyncClient(server.url) as client:
            return await client.run(current.name, json.dumps(payload).encode())

    assert int(asyncio.run(scenario())) == 0x0AF7651916CD43DD8448EB211C80319C
    [ran] = exporter.get_finished_spans()
    assert parent(ran) == 0xB7AD6B7169203331


def test_call_in_an_outbox_has_the_context_that_is_put_into_it(
    app: App, server: serving.ServerProcess, provider: TracerProvider, exporter: InMemorySpanExporter, tmp_path: Path
) -> None:
    """It passes no middleware, as docs/observability.md says."""

    @app.task
    async def receipt(order: int) -> None: ...

    path = tmp_path / "shop.db"

    async def scenario() -> None:
        with contextlib.closing(sqlite3.connect(path)) as connection, connection:
            outbox.create_table(connection)
            with provider.get_tracer("web").start_as_current_span("request"):
                call = receipt.bind(7)
                propagate.inject(call.meta)
                outbox.submit(connection, call)
        async with apps.working(app):
            relay = outbox.Relay(f"sqlite://{path}", url_of_http(server))
            assert await relay.drain() == 1
            await relay.close()
            while len(exporter.get_finished_spans()) < 2:
                await asyncio.sleep(0.01)

    asyncio.run(scenario())
    requested, ran = exporter.get_finished_spans()
    assert ran.name == f"run {app.name}.receipt"
    assert parent(ran) == requested.context.span_id


def url_of_http(server: serving.ServerProcess) -> str:
    return next(url for url in server.urls if url.startswith("http:"))
