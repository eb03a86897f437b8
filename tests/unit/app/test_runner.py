"""One attempt at a task, as a worker makes it."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from geartrain.app import App, Proceed, Running, current_task
from geartrain.app.runner import Ending, Runner
from geartrain.app.task import Task
from geartrain.app.threads import Threads
from geartrain.errors import ArgumentsError, CodecError


class Job:
    """A job that writes down what is said about it."""

    def __init__(self, payload: bytes) -> None:
        self.handle = b"H:test:1"
        self.payload = payload
        self.said: list[object] = []

    def progress(self, numerator: float, denominator: float) -> None:
        self.said.append((numerator, denominator))

    def data(self, data: bytes) -> None:
        self.said.append(data)

    def warn(self, data: bytes) -> None:
        self.said.append(data)

    async def attempts(self) -> int:
        return 4


@pytest.fixture
def threads() -> Iterator[Threads]:
    threads = Threads("test")
    yield threads
    threads.close()


@pytest.fixture
def run(app: App, threads: Threads) -> Any:
    def run(task: Task[Any, Any], payload: bytes) -> Ending:
        return asyncio.run(Runner(app.around_runs, threads).run(task, Job(payload)))

    return run


def test_a_coroutine_and_a_plain_function(app: App, run: Any) -> None:
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
def test_a_payload_that_does_not_fit_is_an_ending_and_no_crash(
    app: App, run: Any, payload: bytes, kind: type[Exception]
) -> None:
    @app.task
    async def double(number: int) -> int:
        return 2 * number

    assert isinstance(run(double, payload).error, kind)


def test_a_result_that_cannot_be_written(app: App, run: Any) -> None:
    @app.task
    async def wrong() -> Any:
        return object()

    assert isinstance(run(wrong, b'{"v":1,"args":[]}').error, CodecError)


@pytest.mark.parametrize(
    ("value", "result"), [(None, b""), (b"\xff", b"\xff"), ("as it is", b"as it is"), ([1, 2], b"[1,2]")]
)
def test_who_sends_no_envelope_gets_none(app: App, run: Any, value: object, result: bytes) -> None:
    @app.task
    async def anything(payload: bytes) -> Any:
        return value

    assert run(anything, b"hello").result == result


def test_the_running_task_speaks_from_a_thread(app: App, threads: Threads) -> None:
    @app.task
    def steps(count: int) -> str:
        running = current_task()
        running.progress(1, count)
        running.data("part")
        running.warn(b"careful")
        return f"{running.handle} {running.id} {running.meta}"

    job = Job(b'{"v":1,"args":[2],"id":"x-1","meta":{"a":1}}')
    ending = asyncio.run(Runner([], threads).run(steps, job))
    assert ending.result == b"\"H:test:1 x-1 {'a': 1}\""
    assert job.said == [(1, 2), b"part", b"careful"]


def test_which_attempt_it_is(app: App, run: Any) -> None:
    @app.task
    async def attempt() -> int:
        return await current_task().attempt()

    assert run(attempt, b'{"v":1,"args":[]}').result == b"4"
    assert run(attempt, b'{"v":1,"args":[],"tried":6}').result == b"7"


def test_there_is_no_current_task_outside_of_one(app: App) -> None:
    with pytest.raises(LookupError, match="no task is running here"):
        current_task()


def test_a_coroutine_that_takes_too_long_is_cancelled(app: App, run: Any) -> None:
    cancelled: list[bool] = []

    @app.task(timeout=0.01)
    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(True)

    ending = run(slow, b'{"v":1,"args":[]}')
    assert isinstance(ending.error, TimeoutError)
    assert "longer than the 0.01 seconds" in str(ending.error)
    assert cancelled == [True]


def test_a_timeout_of_its_own_is_no_overdue_task(app: App, run: Any) -> None:
    @app.task(timeout=60)
    async def mine() -> None:
        raise TimeoutError("the shop did not answer")

    assert str(run(mine, b'{"v":1,"args":[]}').error) == "the shop did not answer"


def test_a_thread_that_takes_too_long_is_told_and_left(app: App, threads: Threads) -> None:
    told, go_on = threading.Event(), threading.Event()

    @app.task(timeout=0.01)
    def slow() -> None:
        assert go_on.wait(30)
        if current_task().overdue:
            told.set()

    async def story() -> Ending:
        ending = await Runner([], threads).run(slow, Job(b'{"v":1,"args":[]}'))
        go_on.set()
        return ending

    assert isinstance(asyncio.run(story()).error, TimeoutError)
    assert told.wait(30)


@pytest.mark.parametrize("thrown", [SystemExit(3), KeyboardInterrupt(), StopIteration()])
def test_a_thread_that_wants_to_end_the_program_only_fails(app: App, run: Any, thrown: BaseException) -> None:
    @app.task
    def leave() -> None:
        raise thrown

    assert type(thrown).__name__ in str(run(leave, b'{"v":1,"args":[]}').error)


def test_threads_are_used_again(app: App, threads: Threads) -> None:
    @app.task
    def name() -> str:
        return threading.current_thread().name

    async def story() -> set[bytes]:
        runner = Runner([], threads)
        return {(await runner.run(name, Job(b'{"v":1,"args":[]}'))).result for _ in range(5)}

    assert asyncio.run(story()) == {b'"test-1"'}


def test_middleware_is_ordered_and_sees_the_failure(app: App, run: Any) -> None:
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
