"""RESP to the byte: commands as clients send them, replies as Redis gives them, and what is refused."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geartrain.errors import WireError
from geartrain.wire import resp

MIB = 1024 * 1024

COMMANDS: list[tuple[bytes, list[list[bytes]]]] = [
    (b"*1\r\n$4\r\nPING\r\n", [[b"PING"]]),
    (b"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", [[b"ECHO", b""]]),
    (b"*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n", [[b"GET", b"a\r\nb"]]),
    (b"*0\r\n*-1\r\n*1\r\n$4\r\nPING\r\n", [[b"PING"]]),
    (b"PING\r\n", [[b"PING"]]),
    (b"  ping   you \n\r\n\n", [[b"ping", b"you"]]),
    (b'SET k "a b\\x00\\"\\n"\r\n', [[b"SET", b"k", b'a b\x00"\n']]),
    (b"SET k 'it\\'s'\r\n", [[b"SET", b"k", b"it's"]]),
    (b"*1\r\n$4\r\nPING\r\nINFO\r\n*1\r\n$4\r\nQUIT\r\n", [[b"PING"], [b"INFO"], [b"QUIT"]]),
]

REFUSED = [
    (b"*x\r\n", "invalid multibulk length"),
    (b"*1048577\r\n", "invalid multibulk length"),
    (b"*" + b"9" * 30, "too big mbulk count string"),
    (b"*1\r\n+OK\r\n", "expected '$', got '+'"),
    (b"*1\r\n*1\r\n" * 1000, "expected '$', got '*'"),
    (b"*1\r\n\x00", "expected '$', got '\\x00'"),
    (b"*1\r\n$-1\r\n", "invalid bulk length"),
    (b"*1\r\n$1099511627776\r\n", "invalid bulk length"),
    (b"*1\r\n$" + b"1" * 30, "invalid bulk length"),
    (b"*1\r\n$1_0\r\n", "invalid bulk length"),
    (b"*2\r\n$600\r\n%b\r\n$600\r\n" % (b"x" * 600), "a command has at most 1024 bytes"),
    (b"x" * (64 * 1024 + 3), "too big inline request"),
    (b'SET "a\r\n', "unbalanced quotes in request"),
    (b"SET 'a'b\r\n", "unbalanced quotes in request"),
]

REPLIES = [
    (b"x\r\n", b"$3\r\nx\r\n\r\n", b"$3\r\nx\r\n\r\n"),
    (-5, b":-5\r\n", b":-5\r\n"),
    (None, b"$-1\r\n", b"_\r\n"),
    (1.5, b"$3\r\n1.5\r\n", b",1.5\r\n"),
    (resp.NULL_ARRAY, b"*-1\r\n", b"_\r\n"),
    (resp.OK, b"+OK\r\n", b"+OK\r\n"),
    (resp.ErrorReply("ERR", "no\r\nway"), b"-ERR no  way\r\n", b"-ERR no  way\r\n"),
    (resp.VerbatimText(b"a"), b"$1\r\na\r\n", b"=5\r\ntxt:a\r\n"),
    ([b"a", [1, None]], b"*2\r\n$1\r\na\r\n*2\r\n:1\r\n$-1\r\n", b"*2\r\n$1\r\na\r\n*2\r\n:1\r\n_\r\n"),
    ({b"a": 1}, b"*2\r\n$1\r\na\r\n:1\r\n", b"%1\r\n$1\r\na\r\n:1\r\n"),
    ({}, b"*0\r\n", b"%0\r\n"),
]


def read(pieces: list[bytes], limit: int = MIB) -> list[list[bytes]]:
    reader = resp.Reader(limit)
    found = []
    for piece in pieces:
        reader.feed(piece)
        while reader.next() == resp.COMMAND:
            found.append(reader.arguments)
    return found


@pytest.mark.parametrize(("data", "commands"), COMMANDS)
def test_commands_whole_and_in_every_split(data: bytes, commands: list[list[bytes]]) -> None:
    assert read([data]) == commands
    assert read([data[at : at + 1] for at in range(len(data))]) == commands
    for at in range(len(data)):
        assert read([data[:at], data[at:]]) == commands


@pytest.mark.parametrize(("data", "words"), REFUSED)
def test_refused_whole_and_byte_by_byte(data: bytes, words: str) -> None:
    for pieces in ([data], [data[at : at + 1] for at in range(len(data))]):
        with pytest.raises(WireError) as refused:
            read(pieces, 1024)
        assert (refused.value.code, refused.value.text) == ("ERR", f"Protocol error: {words}")
        assert refused.value.fatal


@pytest.mark.parametrize(("value", "second", "third"), REPLIES)
def test_replies(value: resp.Value, second: bytes, third: bytes) -> None:
    assert (resp.encode(value, 2), resp.encode(value, 3)) == (second, third)


def test_push() -> None:
    assert resp.push([b"message", b"c", b"x"], 2) == b"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n"
    assert resp.push([b"message", b"c", b"x"], 3) == b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n"


@pytest.mark.parametrize("text", [b"", b"-", b"+1", b"01", b"1 ", b"1_0", b"0x1", b"9223372036854775808", b"\xb2"])
def test_not_a_number(text: bytes) -> None:
    assert resp.number(text) is None


@pytest.mark.parametrize("number", [0, -1, 2**63 - 1, -(2**63)])
def test_number(number: int) -> None:
    assert resp.number(b"%d" % number) == number


def test_many_arguments_in_many_pieces_are_not_read_again_and_again() -> None:
    """Each argument is looked at once; otherwise this would be a hundred million looks."""
    count = 50_000
    data = resp.request(*[b"x"] * count)
    size = 64
    assert read([data[at : at + size] for at in range(0, len(data), size)]) == [[b"x"] * count]


def test_what_is_arriving_can_be_told() -> None:
    reader = resp.Reader(MIB)
    reader.feed(b"*2\r\n$4\r\nECHO\r\n$100\r\nabc")
    assert reader.next() == resp.MORE
    begun, size = reader.commands_begun, reader.incomplete_command_size
    assert size > 0
    reader.feed(b"d")
    assert reader.next() == resp.MORE
    assert (reader.commands_begun, reader.incomplete_command_size) == (begun, size + 1)


WORDS = st.lists(st.lists(st.binary(max_size=40), min_size=1, max_size=6), max_size=6)


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(at % (len(data) + 1) for at in cuts), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(places)]


@given(WORDS, st.lists(st.integers(0, 10_000), max_size=8))
def test_what_was_sent_is_read(commands: list[list[bytes]], cuts: list[int]) -> None:
    data = b"".join(resp.request(*words) for words in commands)
    assert read(cut(data, cuts)) == commands


@given(st.binary(max_size=200) | st.text("*$\r\n0123456789-'\"\\x ", max_size=200).map(str.encode))
def test_garbage_is_read_or_refused_and_never_otherwise(data: bytes) -> None:
    results = []
    for pieces in ([data], [data[at : at + 1] for at in range(len(data))]):
        try:
            results.append(read(pieces, 100))
        except WireError as error:
            results.append([[error.text.encode(), b"%d" % error.fatal]])
    assert results[0] == results[1], "the same bytes in other pieces were read differently"
    assert not any(words[-1] == b"0" for words in results[0] if words[0].startswith(b"Protocol error"))


SCALARS = st.none() | st.integers(-(2**63), 2**63 - 1) | st.binary(max_size=30)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.binary(max_size=5), inner, max_size=3)
)


def decoded(data: bytes, at: int) -> tuple[object, int]:
    """A reply read by other code than that which wrote it."""
    end = data.index(b"\r\n", at)
    kind, rest, at = data[at : at + 1], data[at + 1 : end], end + 2
    if kind == b":":
        return int(rest), at
    if kind == b"_":
        return None, at
    size = int(rest)
    if kind == b"$":
        return (None, at) if size < 0 else (data[at : at + size], at + size + 2)
    parts = []
    for _ in range(size * (2 if kind == b"%" else 1)):
        part, at = decoded(data, at)
        parts.append(part)
    return (dict(zip(parts[0::2], parts[1::2], strict=True)) if kind == b"%" else parts), at


def flat(value: object) -> object:
    if isinstance(value, dict):
        return [part for key, inner in value.items() for part in (key, flat(inner))]
    return [flat(inner) for inner in value] if isinstance(value, list) else value


@given(VALUES)
def test_replies_can_be_read(value: resp.Value) -> None:
    for version, expected in ((3, value), (2, flat(value))):
        data = resp.encode(value, version)
        assert decoded(data, 0) == (expected, len(data))
