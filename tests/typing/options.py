"""Options of apps, tasks, schedules and submissions."""

import asyncio
import datetime
import logging
import ssl
from typing import assert_type

from geartrain import App, Backoff, Codec, GiveUp, PickleCodec, Retry, TaskHandle, register_codec
from geartrain.app.decorators import ScheduleDecorator, TaskDecorator
from geartrain.model import Priority

app = App("shop", codec=PickleCodec(), keep_logs=logging.WARNING, tls=ssl.create_default_context())


def key(order: int) -> str:
    return f"order-{order}"


@app.task(
    name="shop.invoice",
    retries=5,
    backoff=Backoff(base=1.0, factor=2.0, cap=300.0),
    retry_on=(ConnectionError, TimeoutError),
    give_up_on=PermissionError,
    timeout=1.5,
    priority=Priority.LOW,
    unique=key,
    resubmit=True,
    expires=datetime.timedelta(minutes=5),
    keep_for=3600,
    partition=key,
    partition_from_unique=":",
    max_running=10,
    max_running_per_partition=2,
    rate="100/m",
    burst=20,
    rate_per_partition="5/s",
    burst_per_partition=3,
    max_share=0.5,
    codec="cbor",
    keep_logs="INFO",
)
async def invoice(order: int) -> str:
    if not order:
        raise GiveUp("no order")
    raise Retry("too early", after=60.0)


@app.cron(
    "0 6 * * 1-5",
    timezone="Europe/Berlin",
    name="open",
    unique=False,
    missed="skip",
    priority="high",
    kwargs={"order": 1},
)
@app.task
def check(order: int) -> None: ...


class Rot13(Codec):
    """A codec of a user's own."""

    name = "rot13"


async def submissions() -> None:
    soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
    assert_type(await invoice.options(delay=60, priority="low", unique=True).submit(1), TaskHandle[str])
    assert_type(
        await invoice.options(at=soon, expires=soon, keep_for=datetime.timedelta(days=1)).submit(1), TaskHandle[str]
    )
    assert_type(await invoice.options(at=soon.timestamp(), resubmit=False).submit(1), TaskHandle[str])
    assert_type(await invoice.with_options(unique="order-{order}").call(1), str)
    await invoice.options(delay=1).submit("one")  # refused: arg-type reportArgumentType
    await asyncio.to_thread(check, 1)


def what_they_are() -> None:
    assert_type(app.task(retries=1), TaskDecorator)
    assert_type(app.cron("* * * * *"), ScheduleDecorator)
    register_codec(PickleCodec())


def what_is_refused() -> None:
    invoice.options(delay="soon")  # refused: arg-type reportArgumentType
    invoice.options(at=datetime.date(2030, 1, 1))  # refused: arg-type reportArgumentType
    invoice.options(retries=2)  # refused: call-arg reportCallIssue
    invoice.options(keep_for="1d")  # refused: arg-type reportArgumentType
    invoice.options(partition=7)  # refused: arg-type reportArgumentType
    app.task(retries="3")  # refused: call-overload reportCallIssue reportArgumentType
    app.task(retires=3)  # refused: call-overload reportCallIssue
    app.task(retry_on=OSError("broken"))  # refused: call-overload reportCallIssue reportArgumentType
    app.task(keep_logs=logging)  # refused: call-overload reportCallIssue reportArgumentType
    app.task(backoff="fast")  # refused: call-overload reportCallIssue reportArgumentType
    app.cron("* * * * *", missed="sometimes")  # refused: arg-type reportArgumentType
    app.cron("* * * * *", args="Ada", kwargs=["Ada"])  # refused: arg-type reportArgumentType
    App("shop", 4730)  # refused: arg-type reportArgumentType
    App("shop", codec=b"json")  # refused: arg-type reportArgumentType
    Backoff(first=1)  # refused: call-arg reportCallIssue
    Retry("later", after="an hour")  # refused: arg-type reportArgumentType
