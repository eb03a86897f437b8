"""Dependencies of tasks: providers of every kind, cached per attempt, by type, and replaced in tests."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from geartrain.app import App, Depends, Running
from geartrain.app.dependencies import DependencyPlan
from geartrain.errors import ArgumentsError, JobFailedError
from geartrain.testing import InMemory


class Database:
    """Records what happened to it."""

    def __init__(self) -> None:
        self.log: list[str] = ["open"]


MADE: list[Database] = []


async def get_database() -> AsyncIterator[Database]:
    database = Database()
    MADE.append(database)
    try:
        yield database
        database.log.append("commit")
    except ValueError:
        database.log.append("rollback")
        raise
    finally:
        database.log.append("close")


def plain_connection() -> Iterator[Database]:
    database = Database()
    database.log.append(threading.current_thread().name)
    yield database
    database.log.append("close")


async def user(database: Database = Depends(get_database)) -> str:
    return f"user of {len(database.log)}"


def task_name(running: Running, app: App) -> str:
    return f"{app.name}: {running.task.name} {running.attempt}"


def run(app: App, task: Any, *args: Any, **more: Any) -> Any:
    async def scenario() -> Any:
        async with InMemory(app, **more):
            return await task.call(*args)

    return asyncio.run(scenario())


def test_an_async_task_gets_all_kinds_and_each_provider_is_called_once(app: App) -> None:
    @app.task
    async def send(
        mail: str,
        db: Database = Depends(get_database),
        who: str = Depends(user),
        name: str = Depends(task_name),
        *,
        connection: Database = Depends(plain_connection),
    ) -> list[Any]:
        assert len(connection.log) == 2
        return [mail, who, name, len(MADE), db is MADE[-1]]

    MADE.clear()
    assert run(app, send, "hello") == ["hello", "user of 1", "shop: shop.send 1", 1, True]
    assert MADE[0].log == ["open", "commit", "close"]


def test_a_plain_task_runs_in_the_thread_of_its_plain_dependencies(app: App) -> None:
    @app.task
    def send(connection: Database = Depends(plain_connection)) -> bool:
        return connection.log == ["open", threading.current_thread().name]

    assert run(app, send) is True


def test_a_plain_task_with_async_dependencies(app: App) -> None:
    @app.task
    def send(db: Database = Depends(get_database)) -> str:
        return threading.current_thread().name + str(db.log)

    assert run(app, send) == "geartrain-testing-1['open']"


def test_the_error_of_a_task_reaches_its_generators(app: App) -> None:
    @app.task
    async def send(db: Database = Depends(get_database)) -> None:
        raise ValueError("no")

    MADE.clear()
    with pytest.raises(JobFailedError, match="ValueError: no"):
        run(app, send)
    assert MADE[0].log == ["open", "rollback", "close"]


class Settings:
    def __init__(self) -> None:
        self.colour = "green"


def test_by_type(app: App) -> None:
    @app.provider
    async def provide() -> AsyncIterator[Database]:
        yield Database()

    @app.task
    async def paint(db: Database = Depends(), settings: Settings = Depends()) -> str:
        return f"{settings.colour} {db.log}"

    assert run(app, paint) == "green ['open']"


def test_overrides(app: App) -> None:
    @app.task
    async def who(name: str = Depends(user)) -> str:
        return name

    async def nobody() -> str:
        return "nobody"

    assert run(app, who, overrides={user: nobody}) == "nobody"
    MADE.clear()
    assert run(app, who, overrides={get_database: Database}) == "user of 1"
    assert MADE == []
    assert app.dependency_overrides == {}


def test_direct_calls(app: App) -> None:
    @app.task
    def plain(word: str, connection: Database = Depends(plain_connection)) -> str:
        return word + str(len(connection.log))

    @app.task
    async def coroutine(word: str, db: Database = Depends(get_database)) -> str:
        return word + str(len(db.log))

    @app.task
    def mixed(db: Database = Depends(get_database)) -> int:
        return len(db.log)

    assert plain("a") == "a2"
    assert asyncio.run(coroutine("b")) == "b1"
    assert plain("c", connection=Database()) == "c1"
    assert mixed(db=Database()) == 1
    with pytest.raises(TypeError, match="async dependencies"):
        mixed()


def test_dependencies_are_no_arguments_of_the_call(app: App) -> None:
    @app.task(unique=True)
    def send(mail: str, db: Database = Depends(get_database)) -> None: ...

    assert send.bind("hello").payload().startswith(b'{"v":1,"args":["hello"],')
    with pytest.raises(TypeError):
        send.bind("hello", Database())


def unfilled(number: int) -> int:
    return number


def test_what_is_wrong_is_said_before_the_first_job(app: App) -> None:
    with pytest.raises(ValueError, match="must come after the others"):

        @app.task
        def wrong_order(db: Database = Depends(get_database), mail: str = "") -> None: ...

    @app.task
    def needs_number(number: int = Depends(unfilled)) -> None: ...

    @app.task
    def needs_type(thing: Any = Depends()) -> None: ...

    for task, text in ((needs_number, "'number' of unfilled has no default"), (needs_type, "needs a class")):
        with pytest.raises(ArgumentsError, match=text):
            _ = task.plan
    with pytest.raises(ValueError, match="must say which class"):
        app.provider(lambda: 1)


def test_dependencies_that_need_each_other(app: App) -> None:
    def first() -> int:
        return 1

    def second(number: int = Depends(first)) -> int:
        return number

    app.dependency_overrides[first] = second
    with pytest.raises(ArgumentsError, match=r"need each other: .*second -> .*second"):
        DependencyPlan(app, second)
