"""Types of setting values: the same rules for flags, the environment and TOML.

A type parses text or a TOML value and raises ValueError for anything else; `allowed` completes the sentence
"must be ...". msgspec parses the plain types.
"""

import ipaddress
import re
import urllib.parse
from collections.abc import Callable, Iterable
from typing import Annotated, Any, NamedTuple

import msgspec

from geartrain import address, units
from geartrain.address import Address
from geartrain.doors import web_access
from geartrain.model import Expiry, FailureAction

# The buffers of Gearman's libraries hold handles of 63 bytes; a colon and the digits of a 64-bit number take 20.
PREFIX_LIMIT = 63 - 1 - 19

_HANDLE_PREFIX = re.compile(rf"[!-~]{{1,{PREFIX_LIMIT}}}")
_STORE = re.compile(r"memory|sqlite://(/[^?#]+)|postgresql://[^#]*")


class ValueType(NamedTuple):
    """How the values of a setting are written and parsed."""

    metavar: str  # stands for the value in --help
    allowed: str  # completes "must be ..."
    parse: Callable[[Any], Any]  # text or a TOML value; raises ValueError
    show: Callable[[Any], str] = str  # as the documentation writes it
    flag: bool = False  # `--name` and `--no-name` on the command line
    many: bool = False  # the flag may be repeated
    choices: tuple[str, ...] = ()  # all values, where there are few


class Description(NamedTuple):
    """What the table says about a setting besides its name, group and default."""

    value_type: ValueType
    help: str
    empty_means: str = ""  # for people: the effect of an empty default


def _plain(type: Any) -> Callable[[Any], Any]:
    """Parse a type that msgspec knows, from text as well as from TOML's own type."""

    def parse(value: Any) -> Any:
        try:
            return msgspec.convert(value, type, strict=False)
        except msgspec.ValidationError as error:  # not a ValueError in older versions of msgspec
            raise ValueError(str(error)) from None

    return parse


def _size_or_zero(value: object) -> int:
    return 0 if value in (0, "0") else _size(value)


def _size(value: Any) -> int:
    size = units.parse_size(_as_text(value))
    if size < 1:
        raise ValueError("a size of zero")
    return size


def _duration(value: Any) -> float:
    return units.parse_duration(_as_text(value))


def _lease(value: Any) -> float:
    seconds = _duration(value)
    if not 2.0 <= seconds <= 60.0:
        raise ValueError(f"{seconds:g} seconds")
    return seconds


def _duration_above_zero(value: Any) -> float:
    seconds = _duration(value)
    if seconds == 0:
        raise ValueError("a duration of zero")
    return seconds


def _system_seconds(value: Any) -> int:
    """Whole seconds, the unit of the system's socket options."""
    text = _as_text(value)
    seconds = -1.0 if text == "-1" else units.parse_duration(text)
    if seconds == 0 or seconds != int(seconds):
        raise ValueError(f"{text!r} is not a whole number of seconds")
    return int(seconds)


def _system_count(value: Any) -> int:
    count: int = _plain(Annotated[int, msgspec.Meta(ge=-1)])(value)
    if count == 0:
        raise ValueError("a count of zero")
    return count


def _addresses(value: Any) -> tuple[Address, ...]:
    entries = value if isinstance(value, list) else _words(value)
    return tuple(address.parse(_url(entry)) for entry in entries)


def _url(entry: Any) -> str:
    """The URL of an address that TOML has as text, or as a table with `url` and the URL's parameters."""
    if isinstance(entry, str):
        return entry
    table: dict[str, str | list[str]] = _plain(dict[str, str | list[str]])(entry)
    if not isinstance(url := table.pop("url", None), str):
        raise ValueError("a table without `url`")
    parameters = []
    for name, words in table.items():
        text = words if isinstance(words, str) else "+".join(words)
        parameters.append(f"{name}={urllib.parse.quote(text, safe='/:+,* ')}")
    return f"{url}{'&' if '?' in url else '?'}{'&'.join(parameters)}" if parameters else url


def _words(value: Any) -> tuple[str, ...]:
    """A list, or a text with spaces or commas between the words."""
    words = re.split(r"[\s,]+", value.strip()) if isinstance(value, str) else _plain(list[str])(value)
    return tuple(word for word in words if word)


def _networks(value: Any) -> tuple[str, ...]:
    words = _words(value)
    for word in words:
        ipaddress.ip_network(word, strict=False)
    return words


def _origins(value: Any) -> tuple[str, ...]:
    words = _words(value)
    for word in words:
        if not web_access.is_origin(word):
            raise ValueError(f"{word!r} is not an origin")
    return words


def _matching(pattern: re.Pattern[str]) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise ValueError(f"{value!r} does not match")
        return value

    return parse


def _as_text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError(f"{value!r} is not a number or text")
    return f"{value:f}" if isinstance(value, float) else str(value)


def _show_flag(value: bool) -> str:
    return "true" if value else "false"


def _show_list(values: Iterable[object]) -> str:
    return " ".join(map(str, values))


def choice(*choices: str) -> ValueType:
    """One of these words."""

    def parse(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"{value!r} is not one of the choices")
        return str(value)

    return ValueType("WORD", f"one of {', '.join(choices)}", parse, choices=choices)


TEXT = ValueType("TEXT", "text", _plain(Annotated[str, msgspec.Meta(min_length=1)]))
OPTIONAL_TEXT = ValueType("TEXT", "text", _plain(str))
PATH = ValueType("FILE", "the path of a file", _plain(str))
FLAG = ValueType("", "true or false", _plain(bool), _show_flag, flag=True)
COUNT = ValueType("N", "a whole number, 0 or more", _plain(Annotated[int, msgspec.Meta(ge=0)]))
COUNT_FROM_ONE = ValueType("N", "a whole number, 1 or more", _plain(Annotated[int, msgspec.Meta(ge=1)]))
SIZE = ValueType("SIZE", "a size such as 64MiB, 500kB or a number of bytes", _size, units.show_size)
SIZE_OR_ZERO = ValueType(
    "SIZE", "0, or a size such as 64MiB, 500kB or a number of bytes", _size_or_zero, units.show_size
)
DURATION = ValueType("TIME", "a time such as 1ms, 60s, 2h or a number of seconds", _duration, units.show_duration)
DURATION_ABOVE_ZERO = ValueType(
    "TIME",
    "a time above zero such as 1ms, 60s, 2h or a number of seconds",
    _duration_above_zero,
    units.show_duration,
)
SYSTEM_SECONDS = ValueType(
    "SECONDS", "whole seconds such as 30 or 2m, or -1 for the system's own value", _system_seconds
)
SYSTEM_COUNT = ValueType("N", "a whole number from 1, or -1 for the system's own value", _system_count)
ADDRESSES = ValueType(
    "URL",
    "a list of URLs such as gearman://127.0.0.1:4730, or of tables with a `url` and its parameters",
    _addresses,
    _show_list,
    many=True,
)
WORDS = ValueType("WORD", "a list of words", _words, _show_list, many=True)
NETWORKS = ValueType(
    "NETWORK",
    "a list of addresses or networks such as 127.0.0.1 or 10.0.0.0/8",
    _networks,
    _show_list,
    many=True,
)
ORIGINS = ValueType(
    "ORIGIN",
    "a list of origins such as https://app.example or http://127.0.0.1:8000",
    _origins,
    _show_list,
    many=True,
)
STORE = ValueType("STORE", "memory, sqlite:///path/to/file or postgresql://user@host/database", _matching(_STORE))
LEASE = ValueType("TIME", "a time from 2s to 60s", _lease, units.show_duration)
HANDLE_PREFIX = ValueType(
    "TEXT", f"1 to {PREFIX_LIMIT} visible ASCII characters without spaces", _matching(_HANDLE_PREFIX)
)
EXPIRY = choice(*(expiry.value for expiry in Expiry))._replace(
    parse=_plain(Expiry), show=lambda expiry: str(expiry.value)
)
FAILURES = choice(*(failures.value for failures in FailureAction))._replace(
    parse=_plain(FailureAction), show=lambda failures: str(failures.value)
)
