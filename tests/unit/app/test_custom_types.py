"""Arguments and results beyond what msgspec knows, with every codec; errors name the argument."""

import asyncio
import dataclasses
import datetime
import decimal
import enum
import ipaddress
import uuid
from pathlib import Path, PurePosixPath
from typing import Any

import attrs
import msgspec
import pydantic
import pytest

from geartrain.app import App
from geartrain.errors import ArgumentsError, CodecError
from geartrain.testing import InMemory


class Address(pydantic.BaseModel):
    street: str
    since: datetime.date


class Mail(pydantic.BaseModel):
    to: str
    at: datetime.datetime
    addresses: list[Address] = []


@attrs.define
class Point:
    x: int
    y: int = 0


@dataclasses.dataclass
class Order:
    number: int
    mail: Mail | None = None
    file: Path = Path("order.txt")


class Colour(enum.Enum):
    RED = "red"


class Size(enum.IntEnum):
    LARGE = 3


class Box(msgspec.Struct):
    point: Point
    colour: Colour = Colour.RED


MAIL = Mail(
    to="Ada",
    at=datetime.datetime(2030, 1, 1, 12, tzinfo=datetime.UTC),
    addresses=[Address(street="Long Street", since=datetime.date(2020, 2, 29))],
)
VALUES: list[tuple[Any, Any]] = [
    (Mail, MAIL),
    (list[Mail], [MAIL, MAIL]),
    (dict[str, Mail], {"first": MAIL}),
    (Mail | None, None),
    (Point, Point(1, 2)),
    (Order, Order(7, MAIL, Path("/srv/a.txt"))),
    (Colour, Colour.RED),
    (Size, Size.LARGE),
    (Box, Box(Point(3))),
    (datetime.datetime, datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)),
    (datetime.date, datetime.date(2030, 1, 1)),
    (datetime.timedelta, datetime.timedelta(hours=36)),
    (Path, Path("/srv/a.txt")),
    (PurePosixPath, PurePosixPath("a/b")),
    (uuid.UUID, uuid.UUID(int=7)),
    (decimal.Decimal, decimal.Decimal("1.50")),
    (ipaddress.IPv4Address, ipaddress.IPv4Address("127.0.0.1")),
    (frozenset[int], frozenset({1, 2})),
]


@pytest.mark.parametrize("codec", ["json", "msgpack", "cbor"])
@pytest.mark.parametrize(("kind", "value"), VALUES, ids=lambda value: str(value)[:20])
def test_round_trip(codec: str, kind: Any, value: Any) -> None:
    app = App("shop", codec=codec)

    def echo(value):  # type: ignore[no-untyped-def]
        assert value == VALUES[number][1]
        return value

    number = next(index for index, row in enumerate(VALUES) if row[0] is kind)
    echo.__annotations__ = {"value": kind, "return": kind}
    task = app.task(echo)

    async def scenario() -> Any:
        async with InMemory(app):
            return await task.call(value)

    result = asyncio.run(scenario())
    assert result == value
    assert type(result) is type(value)


BAD: dict[bytes, str] = {
    b'[{"to":"Ada","at":"noon"},{"number":1},[]]': r"argument 'mail' of .*send does not fit: at: Input should be",
    b'[{"to":"Ada"},{"number":1},[]]': r"argument 'mail' of .*send does not fit: at: Field required",
    b'[{"to":"Ada","at":0},{"number":"x"},[]]': r"argument 'order' of .*send does not fit: Expected `int`, got `str`",
    b'[{"to":"Ada","at":0},{"number":1},[5]]': r"argument 'files' of .* does not fit: expected text, got int - at",
}


@pytest.mark.parametrize("arguments", BAD)
def test_errors_name_the_argument(app: App, arguments: bytes) -> None:
    @app.task
    def send(mail: Mail, order: Order, files: list[Path]) -> None: ...

    decoded = msgspec.json.decode(arguments)
    with pytest.raises(ArgumentsError, match=BAD[arguments]):
        send.parameters.read(send.codec, decoded, {})


def test_an_argument_that_cannot_be_sent_is_named(app: App) -> None:
    @app.task
    def send(mail: Any, copies: Any = 1) -> None: ...

    with pytest.raises(
        CodecError, match=r"argument 'copies' of shop.send: .* type object cannot be sent; use a built-in"
    ):
        send.bind("hello", copies=[object()]).payload()


class Plain:
    """No type that can be decoded."""


def test_a_type_that_cannot_be_decoded_is_refused_early(app: App) -> None:
    @app.task
    def send(mail: list[Plain]) -> None: ...

    with pytest.raises(ArgumentsError, match=r"argument 'mail' of .*send cannot be decoded: .*pydantic model"):
        _ = send.parameters.types
