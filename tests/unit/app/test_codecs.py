"""Values to bytes and back, and payloads to calls."""

import datetime
import pickle
from typing import Any

import cbor2
import msgspec
import pytest

from geartrain.app import codecs, envelope
from geartrain.app.codecs import Codec, PickleCodec
from geartrain.app.envelope import Envelope, Reader
from geartrain.errors import ArgumentsError, CodecError

NAMED = ["json", "msgpack", "cbor"]
ALL: list[str | Codec] = [*NAMED, PickleCodec()]


class Point(msgspec.Struct):
    x: int
    y: int


@pytest.mark.parametrize("name", ALL, ids=[*NAMED, "pickle"])
@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, None),
        ("Ada", str),
        (b"\x00\xff", bytes),
        ([1, 2.5, True], list[Any]),
        (Point(1, 2), Point),
        ({"a": [Point(1, 2)]}, dict[str, list[Point]]),
        (datetime.datetime(2026, 11, 15, 22, 30, tzinfo=datetime.UTC), datetime.datetime),
        ({1: "one"}, dict[int, str]),
    ],
    ids=str,
)
def test_a_value_comes_back_in_its_type(name: str | Codec, value: object, kind: Any) -> None:
    codec = codecs.codec_of(name)
    assert codec.decode(codec.encode(value), kind) == value


@pytest.mark.parametrize("name", NAMED)
def test_what_cannot_be_written(name: str) -> None:
    with pytest.raises(CodecError, match="cannot be written"):
        codecs.codec_of(name).encode(object())


def test_what_cannot_be_pickled() -> None:
    with pytest.raises(CodecError, match="cannot be pickled"):
        PickleCodec().encode(lambda: None)


@pytest.mark.parametrize("name", ALL, ids=[*NAMED, "pickle"])
def test_bytes_that_are_something_else(name: str | Codec) -> None:
    with pytest.raises(CodecError, match="this is no"):
        codecs.codec_of(name).decode(b"\xff\xfe\xfd")


@pytest.mark.parametrize("name", NAMED)
def test_a_value_of_another_type(name: str) -> None:
    codec = codecs.codec_of(name)
    with pytest.raises(CodecError, match="Expected `int`"):
        codec.decode(codec.encode("one"), int)


def test_pickle_is_not_had_by_name() -> None:
    with pytest.raises(ValueError, match="PickleCodec"):
        codecs.codec_of("pickle")


def test_an_unknown_codec_names_the_known() -> None:
    with pytest.raises(ValueError, match="json, msgpack, cbor"):
        codecs.codec_of("xml")


def test_a_codec_of_ones_own_is_had_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    class Loud(codecs.JsonCodec):
        name = "loud"

    monkeypatch.setattr(codecs, "_BY_NAME", dict(codecs._BY_NAME))
    codecs.register_codec(Loud())
    assert codecs.codec_of("loud").name == "loud"


def test_the_names_that_are_taken_stay() -> None:
    class Impostor(PickleCodec):
        name = "json"

    with pytest.raises(ValueError, match="already"):
        codecs.register_codec(Impostor())


def test_an_envelope_is_small() -> None:
    assert codecs.JSON.encode(Envelope(1, [3, "Ada"], id="x-1")) == b'{"v":1,"args":[3,"Ada"],"id":"x-1"}'


def test_a_call_written_by_hand() -> None:
    found = Reader(codecs.JSON).read(b' {"v": 1, "args": [1], "kwargs": {"b": 2}, "of the future": true}')
    assert found is not None
    assert (found[0].args, found[0].kwargs, found[0].id, found[0].wait) == ([1], {"b": 2}, "", False)


@pytest.mark.parametrize("name", NAMED)
def test_json_is_always_understood_and_answered_in(name: str) -> None:
    found = Reader(codecs.codec_of(name)).read(b'{"v":1,"args":[1]}')
    assert found is not None
    assert found[1] is codecs.JSON


@pytest.mark.parametrize("name", ["msgpack", "cbor"])
def test_a_call_in_another_codec(name: str) -> None:
    codec = codecs.codec_of(name)
    found = Reader(codec).read(codec.encode(Envelope(1, [b"\xff"])))
    assert found is not None
    assert found[0].args == [b"\xff"]
    assert found[1] is codec


@pytest.mark.parametrize("payload", [b"", b"hello", b"7", b"[1]", b'{"args":[1]}', b'{"v":1,"args":1}', b"\xff"])
def test_what_is_no_envelope(payload: bytes) -> None:
    assert Reader(codecs.JSON).read(payload) is None


def test_an_envelope_of_a_later_version() -> None:
    with pytest.raises(ArgumentsError, match="version 2"):
        Reader(codecs.JSON).read(b'{"v":2,"args":[]}')


def test_a_pickle_is_never_loaded_unless_asked_for() -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (pytest.fail, ("it was unpickled",))

    bomb = pickle.dumps(Trap())
    for name in NAMED:
        assert Reader(codecs.codec_of(name)).read(bomb) is None


def test_cbor_that_runs_out_is_no_envelope() -> None:
    whole = cbor2.dumps({"v": 1, "args": [1]})
    assert Reader(codecs.codec_of("cbor")).read(whole[:-1]) is None


def test_ids_differ_also_after_a_fork() -> None:
    mine = envelope.new_id()
    envelope._names.renew()
    ids = {mine, envelope.new_id(), envelope.new_id()}
    assert len(ids) == 3
