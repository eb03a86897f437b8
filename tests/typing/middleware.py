"""Middleware, the running task, and OpenTelemetry."""

from typing import Any, assert_type

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider

from geartrain import App, Call, Middleware, Proceed, Running, Task, current_task
from geartrain.otel import Metrics, Tracing

app = App("shop")


@app.around_submit
async def mark(call: Call[Any], proceed: Proceed) -> Any:
    call.meta["trace"] = "4711"
    return await proceed()


@app.around_run
async def timed(running: Running, proceed: Proceed) -> Any:
    assert_type(running, Running)
    return await proceed()


class Watch(Middleware):
    """Both kinds, with settings."""

    def __init__(self, loud: bool) -> None:
        self.loud = loud

    async def around_submit(self, call: Call[Any], proceed: Proceed) -> Any:
        return await proceed()

    async def around_run(self, running: Running, proceed: Proceed) -> Any:
        try:
            return await proceed()
        except Exception as error:
            assert_type(running.will_retry(error), bool)
            raise


def what_can_be_added() -> None:
    assert_type(app.add_middleware(Watch(loud=True)), None)
    app.add_middleware(Tracing())
    app.add_middleware(Tracing(TracerProvider()))
    app.add_middleware(Metrics())
    app.add_middleware(Metrics(meter_provider=MeterProvider()))


def in_a_task() -> None:
    running = current_task()
    assert_type(running, Running)
    assert_type(running.task, Task[Any, Any])
    assert_type(running.id + running.handle, str)
    assert_type(running.attempt, int)
    assert_type(running.revoked, bool)
    assert_type(running.overdue, bool)
    assert_type(running.meta, dict[str, Any])
    assert_type(running.kwargs, dict[str, Any])
    running.progress(1, of=4)
    running.data(b"bytes")
    running.warn("text")


async def without_proceed(running: Running) -> None: ...


def what_is_refused() -> None:
    app.add_middleware(timed)  # refused: arg-type reportArgumentType
    app.add_middleware(Tracing)  # refused: arg-type reportArgumentType
    app.around_run(without_proceed)  # refused: type-var reportArgumentType
    Tracing(MeterProvider())  # refused: arg-type reportArgumentType
    Metrics(TracerProvider())  # refused: arg-type reportArgumentType
    current_task().progress("half")  # refused: arg-type reportArgumentType
    current_task().data(7)  # refused: arg-type reportArgumentType
    current_task().will_retry("again")  # refused: arg-type reportArgumentType
