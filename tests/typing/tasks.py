"""What a type checker knows of tasks. Read by mypy, never run; every expected complaint has its ignore."""

from collections.abc import Coroutine
from typing import Any, assert_type

from geartrain.app import App, Call, Proceed, Running, SyncTaskHandle, TaskHandle
from geartrain.app.task import CoroutineTask, PlainTask
from geartrain.testing import InMemory, Submitted

app = App("shop")


@app.task
async def add(a: int, b: int = 0) -> int:
    return a + b


@app.task(retries=3, backoff=2.0, timeout=60, priority="high", unique="greet-{name}", retry_on=OSError)
def greet(name: str, *, loud: bool = False) -> str:
    return name


@app.cron("*/5 * * * *")
async def tidy() -> None: ...


@app.cron("0 * * * *", args=("Ada",))
@app.task(retries=1)
def hourly(name: str) -> list[str]:
    return [name]


@app.around_run
async def timed(running: Running, proceed: Proceed) -> Any:
    return await proceed()


async def in_a_loop() -> None:
    coroutine = add(1, 2)
    _ = assert_type(coroutine, Coroutine[Any, Any, int])
    assert_type(await coroutine, int)
    assert_type(await add(1), int)
    assert_type(greet("Ada"), str)
    assert_type(await add.submit(1, b=2), TaskHandle[int])
    assert_type(await (await greet.submit("Ada", loud=True)).result(timeout=5), str)
    assert_type(await add.call(1), int)
    assert_type(await add.start(1), TaskHandle[int])
    assert_type(await add.with_options(delay=60, priority="low", unique=True).submit(1), TaskHandle[int])
    assert_type(add.bind(1, 2), Call[int])
    assert_type(await app.submit_many([add.bind(1), add.bind(2)]), list[TaskHandle[int]])
    assert_type(await tidy.call(), None)
    assert_type(await hourly.call("Ada"), list[str])


def without_a_loop() -> None:
    assert_type(add.submit_sync(1), SyncTaskHandle[int])
    assert_type(add.submit_sync(1).result(), int)
    assert_type(greet.call_sync("Ada"), str)
    assert_type(app.submit_many_sync([greet.bind("Ada")]), list[SyncTaskHandle[str]])


def what_the_decorators_make() -> None:
    plain: PlainTask[[str], list[str]] = hourly
    coroutine: CoroutineTask[[], None] = tidy
    assert plain.name, coroutine.name


def in_tests(memory: InMemory) -> None:
    assert_type(memory.assert_submitted(greet, "Ada", loud=True), Submitted)
    memory.assert_submitted(greet, 1)  # type: ignore[arg-type]
    memory.assert_submitted(tidy, 1)  # type: ignore[call-arg]


async def what_is_refused() -> None:
    await add.submit("one")  # type: ignore[arg-type]
    await add.submit()  # type: ignore[call-arg]
    await add.submit(1, 2, 3)  # type: ignore[call-arg]
    await add.submit(1, c=2)  # type: ignore[call-arg]
    await greet.call("Ada", loud="yes")  # type: ignore[arg-type]
    greet.submit_sync(name=1)  # type: ignore[arg-type]
    add.bind(b=None, a=1)  # type: ignore[arg-type]
    add.with_options(delay="soon")  # type: ignore[arg-type]
    add.with_options(retries=2)  # type: ignore[call-arg]
    number: str = await add.call(1)  # type: ignore[assignment]
    app.task(retries="3")  # type: ignore[call-overload]
    app.task(retires=3)  # type: ignore[call-overload]
    print(number)
