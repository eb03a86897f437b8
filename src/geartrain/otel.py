"""OpenTelemetry for the tasks of an app: `pip install 'geartrain[otel]'`.

    app.add_middleware(Tracing())
    app.add_middleware(Metrics())

A submission is a PRODUCER span, each attempt in a worker a CONSUMER span. The context of the submission is sent in the
`meta` of the call, as OpenTelemetry's global propagator writes it: by default as W3C trace context. So an attempt is in
the trace of its submission. It is a child of that span, and linked to it.

Names and attributes are those of OpenTelemetry's semantic conventions for messaging; what these do not have begins with
`geartrain.`. Without an SDK all of it does nothing.
"""

import asyncio
import functools
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from geartrain import __version__, address
from geartrain.app.call import Call
from geartrain.app.context import Running
from geartrain.app.handle import TaskHandle
from geartrain.app.middleware import Middleware, Proceed
from geartrain.app.retry import Retry, reason_of
from geartrain.errors import AddressError

try:
    from opentelemetry import context, metrics, propagate, trace
    from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode
except ImportError as missing:
    raise ImportError("geartrain.otel needs OpenTelemetry's API: pip install 'geartrain[otel]'") from missing

__all__ = ["Metrics", "Tracing"]

_SCOPE: Final = "geartrain"
# Seconds. The conventions recommend those up to 10; tasks take longer than messages.
_DURATIONS: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60, 300, 1800)

# How an attempt ended, as the attribute `geartrain.task.outcome`.
DONE: Final = "done"
RETRY: Final = "retry"  # another attempt follows
FAILED: Final = "failed"  # no other follows
CANCELLED: Final = "cancelled"


class Tracing(Middleware):
    """Spans of submissions and attempts.

    >>> from geartrain.app import App
    >>> app = App("shop")
    >>> app.add_middleware(Tracing())
    """

    def __init__(self, tracer_provider: trace.TracerProvider | None = None) -> None:
        """`tracer_provider` is for a program that does not use the global one."""
        self._tracer = trace.get_tracer(_SCOPE, __version__, tracer_provider)

    async def around_submit(self, call: Call[Any], proceed: Proceed) -> Any:
        attributes = {**_operation("submit", "send", call.task.name), "messaging.message.conversation_id": call.id}
        with self._span(f"submit {call.task.name}", SpanKind.PRODUCER, attributes) as span:
            propagate.inject(call.meta)
            try:
                handle: TaskHandle[Any] = await proceed()
            except Exception as error:
                _record(span, error)
                raise
            span.set_attributes({"messaging.message.id": handle.handle, **_server(handle.server)})
            return handle

    async def around_run(self, running: Running, proceed: Proceed) -> Any:
        # An empty context without one of the sender, so that the worker's own is never the parent.
        sent = propagate.extract({name: value for name, value in running.meta.items() if isinstance(value, str)})
        token = context.attach(sent)  # whole, since it may have baggage
        try:
            submission = trace.get_current_span(sent).get_span_context()
            links = [Link(submission)] if submission.is_valid else []
            with self._span(f"run {running.task.name}", SpanKind.CONSUMER, _attempt(running), links) as span:
                try:
                    result = await proceed()
                except BaseException as error:
                    _record_failure(span, running, error)
                    raise
                span.set_attribute("geartrain.task.outcome", DONE)
                return result
        finally:
            context.detach(token)

    def _span(
        self, name: str, kind: SpanKind, attributes: Mapping[str, str | int], links: Sequence[Link] = ()
    ) -> AbstractContextManager[Span]:
        """A span that is current for a block. An exception is for the block to record."""
        return self._tracer.start_as_current_span(
            name, kind=kind, attributes=attributes, links=links, record_exception=False, set_status_on_exception=False
        )


class Metrics(Middleware):
    """The number of submissions, attempts by how they ended, how long they took, and how many are running.

    >>> from geartrain.app import App
    >>> app = App("shop")
    >>> app.add_middleware(Metrics())
    """

    def __init__(self, meter_provider: metrics.MeterProvider | None = None) -> None:
        """`meter_provider` is for a program that does not use the global one."""
        meter = metrics.get_meter(_SCOPE, __version__, meter_provider)
        self._sent = meter.create_counter("messaging.client.sent.messages", "{message}", "Submitted calls of tasks")
        self._durations = meter.create_histogram(
            "messaging.process.duration", "s", "Durations of attempts", explicit_bucket_boundaries_advisory=_DURATIONS
        )
        self._attempts = meter.create_counter("geartrain.task.attempts", "{attempt}", "Attempts, by how they ended")
        self._running = meter.create_up_down_counter("geartrain.task.running", "{attempt}", "Attempts that are running")

    async def around_submit(self, call: Call[Any], proceed: Proceed) -> Any:
        attributes = _operation("submit", "send", call.task.name)
        try:
            return await proceed()
        except Exception as error:
            attributes["error.type"] = _type(error)
            raise
        finally:
            self._sent.add(1, attributes)

    async def around_run(self, running: Running, proceed: Proceed) -> Any:
        attributes = _operation("run", "process", running.task.name)
        self._running.add(1, attributes)
        started = time.monotonic()
        failure: BaseException | None = None
        try:
            return await proceed()
        except BaseException as error:
            failure = error
            raise
        finally:
            self._running.add(-1, attributes)
            self._ended(running, attributes, time.monotonic() - started, failure)

    def _ended(self, running: Running, attributes: dict[str, str], took: float, error: BaseException | None) -> None:
        outcome = outcome_of(running, error)
        if error is not None and _is_error(outcome, error):
            attributes = {**attributes, "error.type": _type(error)}
        self._durations.record(took, attributes)
        self._attempts.add(1, {**attributes, "geartrain.task.outcome": outcome})


def outcome_of(running: Running, error: BaseException | None) -> str:
    """How an attempt ended: DONE, RETRY, FAILED or CANCELLED."""
    if error is None:
        return DONE
    if isinstance(error, asyncio.CancelledError):
        return CANCELLED
    return RETRY if running.will_retry(error) else FAILED


def _is_error(outcome: str, error: BaseException) -> bool:
    """Not where the task itself requested another attempt and gets it, nor where the job was cancelled."""
    return outcome == FAILED or (outcome == RETRY and not isinstance(error, Retry))


def _record_failure(span: Span, running: Running, error: BaseException) -> None:
    outcome = outcome_of(running, error)
    span.set_attribute("geartrain.task.outcome", outcome)
    if _is_error(outcome, error):
        _record(span, error)


def _record(span: Span, error: BaseException) -> None:
    span.set_attribute("error.type", _type(error))
    span.record_exception(error)
    span.set_status(Status(StatusCode.ERROR, reason_of(error)))


def _type(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _operation(name: str, kind: str, task: str) -> dict[str, str]:
    return {
        "messaging.system": "geartrain",
        "messaging.operation.name": name,
        "messaging.operation.type": kind,
        "messaging.destination.name": task,
    }


def _attempt(running: Running) -> dict[str, str | int]:
    return {
        **_operation("run", "process", running.task.name),
        "messaging.message.id": running.handle,
        "messaging.message.conversation_id": running.id,
        "geartrain.task.attempt": running.attempt,
    }


@functools.lru_cache(maxsize=64)
def _server(url: str) -> dict[str, str | int]:
    """The address of a server; nothing where it has no URL, as in users' own tests."""
    try:
        parsed = address.parse(url)
    except AddressError:
        return {}
    return (
        {"server.address": parsed.host, "server.port": parsed.port} if parsed.host else {"server.address": parsed.path}
    )
