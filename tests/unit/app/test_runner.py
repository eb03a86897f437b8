"""One attempt at a task, as a worker makes it."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from geartrain.app import App, Proceed, Running, current_task
from geartrain.app.runner import AttemptResult, TaskRunner
from geartrain.app.task import Task
from geartrain.app.threads import DaemonThreads
from geartrain.errors import ArgumentsError, CodecError


class Job:
    """A job that records its updates."""

    def __init__(self, payload: bytes) -> None:
        self.handle = b"H:test:1"
        self.payload = payload
        self.updates: list[object] = []

    def progress(self, numerator: float, denominator: float) -> None:
        self.updates.append((numerator, denominator))

    def data(self, data: bytes) -> None:
        self.updates.append(data)

    def warn(self, data: bytes) -> None:
        self.updates.append(data)

    attempt = 4


@pytest.fixture
def threads() -> Iterator[DaemonThreads]:
    threads = DaemonThreads("test")
    yield threads
    threads.close()


@pytest.fixture
def run(app: App, threads: DaemonThreads) -> Any:
    def run(task: Task[Any, Any], payload: bytes) -> AttemptResult:
        return asyncio.run(TaskRunner(app.around_runs, threads).run(task, Job(payload)))

    return run


def test_coroutine_and_plain_function(app: App, run: Any) -> None:
    @app.task
    async def double(number: int) -> int:
        return 2 * number

    @app.task
    def where() -> bool:
        return threading.current_thread() is threading.main_thread()

    assert run(double, b'{"v":1,"args":[4]}')[:2] == (b"8", None)
    assert run(where, b'{"v":1,"args":[]}').result == b"false"


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        (b'{"v":1,"args":["four"]}', ArgumentsError),
        (b'{"v":1,"args":[]}', ArgumentsError),
        (b'{"v":9,"args":[4]}', ArgumentsError),
        (b"four", ArgumentsError),
        (b"", ArgumentsError),
    ],
)
def test_payload_that_does_not_fit_is_an_error_result(
    app: App, run: Any, payload: bytes, kind: type[Exception]
) -> None:
    @app.task
    async def double(number: int) -> int:
        return 2 * number

    assert isinstance(run(double, payload).error, kind)


def test_result_that_cannot_be_encoded(app: App, run: Any) -> None:
    @app.task
    async def wrong() -> Any:
        return object()

    assert isinstance(run(wrong, b'{"v":1,"args":[]}').error, CodecError)


@pytest.mark.parametrize(
    ("value", "result"), [(None, b""), (b"\xff", b"\xff"), ("as it is", b"as it is"), ([1, 2], b"[1,2]")]
)
def test_result_for_a_payload_without_envelope(app: App, run: Any, value: object, result: bytes) -> None:
    @app.task
    async def anything(payload: bytes) -> Any:
        return value

    assert run(anything, b"hello").result == result


def test_updates_from_a_thread(app: App, threads: DaemonThreads) -> None:
    @app.task
    def steps(count: int) -> str:
        running = current_task()
        running.progress(1, count)
        running.data("part")
        running.warn(b"careful")
        return f"{running.handle} {running.id} {running.meta}"

    job = Job(b'{"v":1,"args":[2],"id":"x-1","meta":{"a":1}}')
    attempt = asyncio.run(TaskRunner([], threads).run(steps, job))
    assert attempt.result == b"\"H:test:1 x-1 {'a': 1}\""
    assert job.updates == [(1, 2), b"part", b"careful"]


def test_attempt_number(app: App, run: Any) -> None:
    @app.task
    async def attempt() -> int:
        return current_task().attempt

    assert run(attempt, b'{"v":1,"args":[]}').result == b"4"
    assert run(attempt, b'{"v":1,"args":[],"tried":6}').result == b"10"  # six on a server that does not count


def test_no_current_task_outside_of_a_task(app: App) -> None:
    with pytest.raises(LookupError, match="no task is running"):
        current_task()


def test_coroutine_is_cancelled_after_its_timeout(app: App, run: Any) -> None:
    cancelled: list[bool] = []

    @app.task(timeout=0.01)
    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(True)

    attempt = run(slow, b'{"v":1,"args":[]}')
    assert isinstance(attempt.error, TimeoutError)
    assert "timed out after 0.01 seconds" in str(attempt.error)
    assert cancelled == [True]


def test_timeout_error_of_the_function_itself(app: App, run: Any) -> None:
    @app.task(timeout=60)
    async def mine() -> None:
        raise TimeoutError("the shop did not answer")

    assert str(run(mine, b'{"v":1,"args":[]}').error) == "the shop did not answer"


def test_thread_is_overdue_after_its_timeout(app: App, threads: DaemonThreads) -> None:
    told, go_on = threading.Event(), threading.Event()

    @app.task(timeout=0.01)
    def slow() -> None:
        assert go_on.wait(30)
        if current_task().overdue:
            told.set()

    async def scenario() -> AttemptResult:
        attempt = await TaskRunner([], threads).run(slow, Job(b'{"v":1,"args":[]}'))
        go_on.set()
        return attempt

    assert isinstance(asyncio.run(scenario()).error, TimeoutError)
    assert told.wait(30)


@pytest.mark.parametrize("thrown", [SystemExit(3), KeyboardInterrupt(), StopIteration()])
def test_system_exit_in_a_thread_is_a_failure(app: App, run: Any, thrown: BaseException) -> None:
    @app.task
    def leave() -> None:
        raise thrown

    assert type(thrown).__name__ in str(run(leave, b'{"v":1,"args":[]}').error)


def test_threads_are_reused(app: App, threads: DaemonThreads) -> None:
    @app.task
    def name() -> str:
        return threading.current_thread().name

    async def scenario() -> set[bytes]:
        runner = TaskRunner([], threads)
        return {(await runner.run(name, Job(b'{"v":1,"args":[]}'))).result for _ in range(5)}

    assert asyncio.run(scenario()) == {b'"test-1"'}


def test_middleware_order_and_failures(app: App, run: Any) -> None:
    seen: list[str] = []

    @app.around_run
    async def outer(running: Running, proceed: Proceed) -> Any:
        seen.append(f"outer {running.task.name} {list(running.args)}")
        try:
            return await proceed()
        except ValueError as error:
            seen.append(f"caught {error}")
            return "instead"

    @app.around_run
    async def inner(running: Running, proceed: Proceed) -> Any:
        seen.append(f"inner {current_task() is running}")
        return await proceed()

    @app.task
    async def wrong(number: int) -> str:
        raise ValueError("no")

    assert run(wrong, b'{"v":1,"args":[4]}').result == b'"instead"'
    assert seen == ["outer shop.wrong [4]", "inner True", "caught no"]
