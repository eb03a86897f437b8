"""How arguments and results become bytes and back. JSON unless an app or a task says otherwise.

Codecs are known by name. Pickle has none: unpickling runs whatever its sender likes, so it takes an object of
`PickleCodec`, made by somebody who knows everyone that can reach the server.
"""

import abc
import datetime
import pickle
from collections.abc import Callable
from typing import Any, Final

import cbor2
import msgspec

from geartrain.errors import CodecError

# What a codec's bytes can hold besides JSON's own kinds; msgspec leaves these alone.
_BINARY_KINDS: Final = (bytes, bytearray, datetime.datetime)


class Codec(abc.ABC):
    """One way to write values. Whatever cannot be read or written is a CodecError."""

    name: str
    checks_types: bool = True  # whether values are read into the types that a function's annotations name

    @abc.abstractmethod
    def encode(self, value: object) -> bytes:
        """The value as bytes."""

    @abc.abstractmethod
    def decoder(self, kind: Any) -> Callable[[bytes], Any]:
        """What reads bytes into this type; made once, called often."""

    @abc.abstractmethod
    def convert(self, value: Any, kind: Any) -> Any:
        """Plain values, as they were read, into this type."""

    def decode(self, data: bytes, kind: Any = Any) -> Any:
        """Bytes into this type."""
        return self.decoder(kind)(data)


class JsonCodec(Codec):
    """JSON; bytes are written as base64, and dates as ISO 8601."""

    name = "json"

    def encode(self, value: object) -> bytes:
        try:
            return msgspec.json.encode(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise CodecError(f"this cannot be written as JSON: {error}") from error

    def decoder(self, kind: Any) -> Callable[[bytes], Any]:
        return _guarded(msgspec.json.Decoder(kind).decode, "JSON")

    def convert(self, value: Any, kind: Any) -> Any:
        return _converted(value, kind, (), str_keys=True)


class MsgpackCodec(Codec):
    """MessagePack: smaller and quicker than JSON, and at home in most languages."""

    name = "msgpack"

    def encode(self, value: object) -> bytes:
        try:
            return msgspec.msgpack.encode(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise CodecError(f"this cannot be written as MessagePack: {error}") from error

    def decoder(self, kind: Any) -> Callable[[bytes], Any]:
        return _guarded(msgspec.msgpack.Decoder(kind).decode, "MessagePack")

    def convert(self, value: Any, kind: Any) -> Any:
        return _converted(value, kind, _BINARY_KINDS)


class CborCodec(Codec):
    """CBOR, as MemoDB's own headers are."""

    name = "cbor"

    def encode(self, value: object) -> bytes:
        try:
            return cbor2.dumps(msgspec.to_builtins(value, builtin_types=_BINARY_KINDS))
        except (TypeError, ValueError, OverflowError, cbor2.CBOREncodeError) as error:
            raise CodecError(f"this cannot be written as CBOR: {error}") from error

    def decoder(self, kind: Any) -> Callable[[bytes], Any]:
        return lambda data: self.convert(self._loaded(data), kind)

    def convert(self, value: Any, kind: Any) -> Any:
        return _converted(value, kind, _BINARY_KINDS)

    @staticmethod
    def _loaded(data: bytes) -> Any:
        try:
            return cbor2.loads(data)
        except Exception as error:  # cbor2 lets several kinds of error out for bytes that are no CBOR
            raise CodecError(f"this is no CBOR: {error}") from error


class PickleCodec(Codec):
    """Python's own format. Whoever can submit a job can run code in a worker that reads it; never a default."""

    name = "pickle"
    checks_types = False

    def encode(self, value: object) -> bytes:
        try:
            return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        except Exception as error:  # what cannot be pickled says so in many ways
            raise CodecError(f"this cannot be pickled: {error}") from error

    def decoder(self, kind: Any) -> Callable[[bytes], Any]:
        def loaded(data: bytes) -> Any:
            try:
                return pickle.loads(data)
            except Exception as error:  # bytes that are no pickle say so in many ways
                raise CodecError(f"this is no pickle: {error}") from error

        return loaded

    def convert(self, value: Any, kind: Any) -> Any:
        return value


def _guarded(decode: Callable[[bytes], Any], language: str) -> Callable[[bytes], Any]:
    """The same decoder, with our own error."""

    def guarded(data: bytes) -> Any:
        try:
            return decode(data)
        except msgspec.ValidationError as error:
            raise CodecError(str(error)) from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise CodecError(f"this is no {language}: {error}") from error

    return guarded


def _converted(value: Any, kind: Any, own: tuple[type, ...], str_keys: bool = False) -> Any:
    try:
        return msgspec.convert(value, kind, builtin_types=own, str_keys=str_keys)
    except msgspec.ValidationError as error:
        raise CodecError(str(error)) from error


JSON: Final = JsonCodec()
_BY_NAME: Final[dict[str, Codec]] = {codec.name: codec for codec in (JSON, MsgpackCodec(), CborCodec())}


def codec_of(asked: "str | Codec") -> Codec:
    """The codec of this name, or the object itself.

    >>> codec_of("json").encode([1, "two"])
    b'[1,"two"]'
    """
    if isinstance(asked, Codec):
        return asked
    found = _BY_NAME.get(asked)
    if found is None:
        aside = "; pickle is not had by name, see PickleCodec" if asked == "pickle" else ""
        raise ValueError(f"there is no codec {asked!r}; there are {', '.join(_BY_NAME)}{aside}")
    return found


def register_codec(codec: Codec) -> None:
    """Have a codec by its name from now on; the names that are taken stay what they are."""
    if codec.name in _BY_NAME and type(_BY_NAME[codec.name]) is not type(codec):
        raise ValueError(f"there is a codec {codec.name!r} already")
    _BY_NAME[codec.name] = codec
