"""Tasks: arguments and results keep the types of the function."""

import datetime
from collections.abc import Coroutine
from typing import Any, assert_type

from geartrain import App, Call, SyncTaskHandle, TaskHandle
from geartrain.app.task import CoroutineTask, PlainTask
from geartrain.testing import InMemory, Submitted

app = App("shop", "gearman://127.0.0.1:4730", "gearman://127.0.0.1:4731", codec="msgpack", token="secret")


@app.task
async def add(a: int, b: int = 0) -> int:
    return a + b


@app.task(retries=3, backoff=2.0, timeout=60, priority="high", unique="greet-{name}", retry_on=OSError)
def greet(name: str, *, loud: bool = False) -> str:
    return name.upper() if loud else name


@app.cron("*/5 * * * *")
async def tidy() -> None: ...


@app.cron("0 * * * *", args=("Ada",))
@app.task(retries=1)
def hourly(name: str, *others: str, when: datetime.date | None = None) -> list[str]:
    return [name, *others, str(when)]


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
    assert_type(add.bind(1, 2), Call[int])
    assert_type(await app.submit(add.bind(1)), TaskHandle[int])
    assert_type(await app.submit_many([add.bind(1), add.bind(2)]), list[TaskHandle[int]])
    assert_type(await app.submit_many(greet.bind(name) for name in ("Ada", "Bob")), list[TaskHandle[str]])
    assert_type(await tidy.call(), None)
    assert_type(await hourly.call("Ada", "Bob", when=datetime.date(2030, 1, 1)), list[str])
    await app.serve("gearman://127.0.0.1:4732", concurrency=20, only=["greet"], burst=True)
    async with app as same:
        assert_type(same, App)


def without_a_loop() -> None:
    assert_type(add.submit_sync(1), SyncTaskHandle[int])
    assert_type(add.submit_sync(1).result(), int)
    assert_type(add.start_sync(1), SyncTaskHandle[int])
    assert_type(greet.call_sync("Ada"), str)
    assert_type(app.submit_many_sync([greet.bind("Ada")]), list[SyncTaskHandle[str]])
    app.run(concurrency=20, stop_timeout=5.0)


def what_the_decorators_make() -> None:
    plain: PlainTask[[], str] = app.task(lambda: "Hello")
    coroutine: CoroutineTask[[], None] = tidy
    assert plain.name
    assert coroutine.name


def in_tests(memory: InMemory) -> None:
    assert_type(memory.assert_submitted(greet, "Ada", loud=True), Submitted)
    assert_type(memory.of(greet), list[Submitted])
    assert_type(memory.drain_sync(forward=True), list[Submitted])
    memory.assert_submitted(greet, 1)  # refused: arg-type reportArgumentType
    memory.assert_submitted(tidy, 1)  # refused: call-arg reportCallIssue


async def what_is_refused() -> None:
    await add.submit("one")  # refused: arg-type reportArgumentType
    await add.submit()  # refused: call-arg reportCallIssue
    await add.submit(1, 2, 3)  # refused: call-arg reportCallIssue
    await add.submit(1, c=2)  # refused: call-arg reportCallIssue
    await add("one")  # refused: arg-type reportArgumentType
    await greet.call("Ada", loud="yes")  # refused: arg-type reportArgumentType
    await greet.call("Ada", True)  # refused: call-arg reportCallIssue
    greet.submit_sync(name=1)  # refused: arg-type reportArgumentType
    greet.start_sync(1)  # refused: arg-type reportArgumentType
    add.bind(b=None, a=1)  # refused: arg-type reportArgumentType
    await hourly.submit("Ada", 7)  # refused: arg-type reportArgumentType
    await hourly.submit("Ada", when="today")  # refused: arg-type reportArgumentType
    await app.submit_many([add])  # refused: arg-type reportArgumentType
    number: str = await add.call(1)  # refused: assignment reportAssignmentType
    text: int = greet.submit_sync("Ada").result()  # refused: assignment reportAssignmentType
    app.run(concurrency="20")  # refused: arg-type reportArgumentType
    app.run(processes=4)  # refused: call-arg reportCallIssue
    print(number, text)
