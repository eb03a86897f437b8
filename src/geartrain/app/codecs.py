"""Codecs: encode arguments and results to bytes, and decode them. JSON is the default.

Codecs can be chosen by name, except pickle: unpickling can run any code of the sender, so it has to be requested with
an object, `PickleCodec()`, where everyone who can reach the server is trusted.
"""

import abc
import datetime
import pickle
from collections.abc import Callable
from typing import Any, Final

import cbor2
import msgspec

from geartrain.app import custom_types
from geartrain.errors import CodecError

# Types that these formats have and JSON does not; msgspec keeps them.
_BINARY_TYPES: Final = (bytes, bytearray, datetime.datetime)


class Codec(abc.ABC):
    """Encodes and decodes values; CodecError for what it cannot encode or decode.

    Make a subclass for a format of your own, and pass an object of it as `codec=` or to `register_codec`.
    """

    name: str
    checks_types: bool = True  # whether values are converted to the types of annotations

    @abc.abstractmethod
    def encode(self, value: object) -> bytes:
        """Encode a value."""

    @abc.abstractmethod
    def decoder(self, kind: Any) -> Callable[[bytes], Any]:
        """Make a function that decodes bytes into this type; it is made once and called often."""

    @abc.abstractmethod
    def convert(self, value: Any, kind: Any) -> Any:
        """Convert a value that was decoded without a type."""

    def decode(self, data: bytes, kind: Any = Any) -> Any:
        """Decode bytes into this type."""
        return self.decoder(kind)(data)


class JsonCodec(Codec):
    """JSON; bytes are encoded as base64, dates as ISO 8601."""

    name = "json"

    def encode(self, value: object) -> bytes:
        try:
            return msgspec.json.encode(value, enc_hook=custom_types.encode)
        except (TypeError, ValueError, OverflowError, NotImplementedError) as error:
            raise CodecError(f"cannot encode as JSON: {error}") from error

    def decoder(self, kind: Any) -> Callable[[bytes], Any]:
        return _with_codec_errors(msgspec.json.Decoder(kind, dec_hook=custom_types.decode).decode, "JSON")

    def convert(self, value: Any, kind: Any) -> Any:
        return _convert(value, kind, (), str_keys=True)


class MsgpackCodec(Codec):
    """MessagePack: smaller and faster than JSON, with libraries for most languages."""

    name = "msgpack"

    def encode(self, value: object) -> bytes:
        try:
            return msgspec.msgpack.encode(value, enc_hook=custom_types.encode)
        except (TypeError, ValueError, OverflowError, NotImplementedError) as error:
            raise CodecError(f"cannot encode as MessagePack: {error}") from error

    def decoder(self, kind: Any) -> Callable[[bytes], Any]:
        return _with_codec_errors(msgspec.msgpack.Decoder(kind, dec_hook=custom_types.decode).decode, "MessagePack")

    def convert(self, value: Any, kind: Any) -> Any:
        return _convert(value, kind, _BINARY_TYPES)


class CborCodec(Codec):
    """CBOR, the format of MemoDB's headers."""

    name = "cbor"

    def encode(self, value: object) -> bytes:
        try:
            return cbor2.dumps(msgspec.to_builtins(value, builtin_types=_BINARY_TYPES, enc_hook=custom_types.encode))
        except (TypeError, ValueError, OverflowError, NotImplementedError, cbor2.CBOREncodeError) as error:
            raise CodecError(f"cannot encode as CBOR: {error}") from error

    def decoder(self, kind: Any) -> Callable[[bytes], Any]:
        return lambda data: self.convert(self._load(data), kind)

    def convert(self, value: Any, kind: Any) -> Any:
        return _convert(value, kind, _BINARY_TYPES)

    @staticmethod
    def _load(data: bytes) -> Any:
        try:
            return cbor2.loads(data)
        except Exception as error:  # cbor2 raises several kinds of exceptions for invalid CBOR
            raise CodecError(f"invalid CBOR: {error}") from error


class PickleCodec(Codec):
    """Python's pickle. Every client that can submit a job can run code in a worker that uses it."""

    name = "pickle"
    checks_types = False

    def encode(self, value: object) -> bytes:
        try:
            return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        except Exception as error:  # pickle raises many kinds of exceptions
            raise CodecError(f"cannot pickle: {error}") from error

    def decoder(self, kind: Any) -> Callable[[bytes], Any]:
        def load(data: bytes) -> Any:
            try:
                return pickle.loads(data)
            except Exception as error:  # pickle raises many kinds of exceptions
                raise CodecError(f"invalid pickle: {error}") from error

        return load

    def convert(self, value: Any, kind: Any) -> Any:
        return value


def _with_codec_errors(decode: Callable[[bytes], Any], format_name: str) -> Callable[[bytes], Any]:
    """The same decoder, raising CodecError."""

    def decode_data(data: bytes) -> Any:
        try:
            return decode(data)
        except msgspec.ValidationError as error:
            raise CodecError(str(error)) from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise CodecError(f"invalid {format_name}: {error}") from error

    return decode_data


def _convert(value: Any, kind: Any, builtin_types: tuple[type, ...], str_keys: bool = False) -> Any:
    try:
        return msgspec.convert(
            value, kind, builtin_types=builtin_types, str_keys=str_keys, dec_hook=custom_types.decode
        )
    except msgspec.ValidationError as error:
        raise CodecError(str(error)) from error


JSON: Final = JsonCodec()
_BY_NAME: Final[dict[str, Codec]] = {codec.name: codec for codec in (JSON, MsgpackCodec(), CborCodec())}


def find_codec(codec: "str | Codec") -> Codec:
    """The codec with this name, or the object itself; ValueError for an unknown name.

    >>> find_codec("json").encode([1, "two"])
    b'[1,"two"]'
    """
    if isinstance(codec, Codec):
        return codec
    if codec not in _BY_NAME:
        hint = "; for pickle, pass an object: codec=PickleCodec()" if codec == "pickle" else ""
        raise ValueError(f"unknown codec {codec!r}; known: {', '.join(_BY_NAME)}{hint}")
    return _BY_NAME[codec]


def register_codec(codec: Codec) -> None:
    """Make a codec available by its name; ValueError if another codec has that name."""
    if codec.name in _BY_NAME and type(_BY_NAME[codec.name]) is not type(codec):
        raise ValueError(f"another codec is named {codec.name!r}")
    _BY_NAME[codec.name] = codec
