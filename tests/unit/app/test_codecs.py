"""Codecs and envelopes."""

import datetime
import pickle
from typing import Any

import cbor2
import msgspec
import pytest

from geartrain.app import codecs, envelope
from geartrain.app.codecs import Codec, PickleCodec
from geartrain.app.envelope import Envelope, EnvelopeReader
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
def test_round_trip_keeps_the_type(name: str | Codec, value: object, kind: Any) -> None:
    codec = codecs.find_codec(name)
    assert codec.decode(codec.encode(value), kind) == value


@pytest.mark.parametrize("name", NAMED)
def test_value_that_cannot_be_encoded(name: str) -> None:
    with pytest.raises(CodecError, match="cannot encode as"):
        codecs.find_codec(name).encode(object())


def test_value_that_cannot_be_pickled() -> None:
    with pytest.raises(CodecError, match="cannot pickle"):
        PickleCodec().encode(lambda: None)


@pytest.mark.parametrize("name", ALL, ids=[*NAMED, "pickle"])
def test_invalid_bytes(name: str | Codec) -> None:
    with pytest.raises(CodecError, match="invalid "):
        codecs.find_codec(name).decode(b"\xff\xfe\xfd")


@pytest.mark.parametrize("name", NAMED)
def test_value_of_another_type(name: str) -> None:
    codec = codecs.find_codec(name)
    with pytest.raises(CodecError, match="Expected `int`"):
        codec.decode(codec.encode("one"), int)


def test_pickle_has_no_name() -> None:
    with pytest.raises(ValueError, match="PickleCodec"):
        codecs.find_codec("pickle")


def test_unknown_codec_error_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="json, msgpack, cbor"):
        codecs.find_codec("xml")


def test_registered_codec_is_found_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    class Loud(codecs.JsonCodec):
        name = "loud"

    monkeypatch.setattr(codecs, "_BY_NAME", dict(codecs._BY_NAME))
    codecs.register_codec(Loud())
    assert codecs.find_codec("loud").name == "loud"


def test_name_of_another_codec_is_refused() -> None:
    class Impostor(PickleCodec):
        name = "json"

    with pytest.raises(ValueError, match="another codec is named"):
        codecs.register_codec(Impostor())


def test_envelope_omits_defaults() -> None:
    assert codecs.JSON.encode(Envelope(1, [3, "Ada"], id="x-1")) == b'{"v":1,"args":[3,"Ada"],"id":"x-1"}'


def test_minimal_envelope() -> None:
    found = EnvelopeReader(codecs.JSON).read(b' {"v": 1, "args": [1], "kwargs": {"b": 2}, "of the future": true}')
    assert found is not None
    assert (found[0].args, found[0].kwargs, found[0].id, found[0].wait) == ([1], {"b": 2}, "", False)


@pytest.mark.parametrize("name", NAMED)
def test_json_envelope_is_always_accepted(name: str) -> None:
    found = EnvelopeReader(codecs.find_codec(name)).read(b'{"v":1,"args":[1]}')
    assert found is not None
    assert found[1] is codecs.JSON


@pytest.mark.parametrize("name", ["msgpack", "cbor"])
def test_envelope_in_another_codec(name: str) -> None:
    codec = codecs.find_codec(name)
    found = EnvelopeReader(codec).read(codec.encode(Envelope(1, [b"\xff"])))
    assert found is not None
    assert found[0].args == [b"\xff"]
    assert found[1] is codec


@pytest.mark.parametrize("payload", [b"", b"hello", b"7", b"[1]", b'{"args":[1]}', b'{"v":1,"args":1}', b"\xff"])
def test_payload_that_is_not_an_envelope(payload: bytes) -> None:
    assert EnvelopeReader(codecs.JSON).read(payload) is None


def test_envelope_of_a_later_version() -> None:
    with pytest.raises(ArgumentsError, match="version 3"):
        EnvelopeReader(codecs.JSON).read(b'{"v":3,"args":[]}')


def test_pickle_is_loaded_only_with_the_pickle_codec() -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (pytest.fail, ("it was unpickled",))

    bomb = pickle.dumps(Trap())
    for name in NAMED:
        assert EnvelopeReader(codecs.find_codec(name)).read(bomb) is None


def test_truncated_cbor_is_not_an_envelope() -> None:
    whole = cbor2.dumps({"v": 1, "args": [1]})
    assert EnvelopeReader(codecs.find_codec("cbor")).read(whole[:-1]) is None


def test_ids_differ_after_a_fork() -> None:
    mine = envelope.new_id()
    envelope._call_ids.renew()
    ids = {mine, envelope.new_id(), envelope.new_id()}
    assert len(ids) == 3
