"""Dependencies, startup and shutdown."""

import contextlib
import sqlite3
from collections.abc import AsyncIterator, Iterator
from typing import Any, assert_type

from geartrain import App, Depends, Running
from geartrain.app.task import CoroutineTask, PlainTask
from geartrain.testing import InMemory


class Mailer:
    """What a provider makes."""


async def get_mailer() -> Mailer:
    return Mailer()


async def get_mailer_and_close(running: Running) -> AsyncIterator[Mailer]:
    yield Mailer()


def get_db(app: App) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        yield db


def get_number() -> int:
    return 7


@contextlib.asynccontextmanager
async def lifespan(app: App) -> AsyncIterator[None]:
    app.state.mailer = await get_mailer()
    yield


app = App("shop", lifespan=lifespan)


@app.on_startup
async def prepare() -> None: ...


@app.on_shutdown
def clean_up() -> None: ...


@app.provider
def get_another(number: int = Depends(get_number)) -> Mailer:
    assert_type(number, int)
    return Mailer()


@app.task
async def send(
    to: str,
    mailer: Mailer = Depends(get_mailer),
    again: Mailer = Depends(get_mailer_and_close),
    by_type: Mailer = Depends(),
    number: int = Depends(get_number),
) -> Mailer:
    return mailer or again or by_type


@app.task
def rename(customer: int, db: sqlite3.Connection = Depends(get_db)) -> int:
    return db.execute("update customer set name = ?", (customer,)).rowcount


async def what_they_are() -> None:
    assert_type(Depends(get_db), sqlite3.Connection)
    assert_type(Depends(get_mailer), Mailer)
    assert_type(Depends(get_mailer_and_close), Mailer)
    assert_type(Depends(Mailer), Mailer)
    assert_type(Depends(), Any)
    assert_type(get_another(), Mailer)
    assert_type(await prepare(), None)
    assert_type(clean_up(), None)


async def calls() -> None:
    coroutine: CoroutineTask[..., Mailer] = send
    plain: PlainTask[..., int] = rename
    assert_type(await send.call("Ada"), Mailer)
    assert_type(await send("Ada", mailer=Mailer()), Mailer)
    assert_type(rename(7), int)
    assert coroutine.name
    assert plain.name
    with InMemory(app, overrides={get_mailer: Mailer}, lifespan=False) as memory:
        assert_type(memory, InMemory)
    async with InMemory(app, now=1.0):
        pass


@app.task
async def wrong(number: str = Depends(get_number)) -> str:  # refused: assignment reportArgumentType
    return number


def not_a_lifespan(app: App) -> None: ...


async def what_is_refused() -> None:
    await send.call("Ada", mailer="mailer")  # refused: arg-type reportArgumentType
    await send.call(mailer=Mailer())  # refused: call-arg reportCallIssue
    Depends("get_db")  # refused: call-overload reportCallIssue reportArgumentType
    App("shop", lifespan=not_a_lifespan)  # refused: arg-type reportArgumentType
    app.on_startup(prepare())  # refused: type-var unused-coroutine reportArgumentType
