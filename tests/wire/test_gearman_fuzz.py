"""Whatever arrives, the codec gives packets, lines or a WireError, and the same ones however it is cut."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from geartrain.errors import WireError
from geartrain.wire import gearman as wire

PACKETS = st.builds(
    lambda kind, arguments: (kind, b"\0".join(arguments), wire.request(kind, *arguments)),
    st.integers(1, wire.LAST_TYPE),
    st.lists(st.binary(max_size=50), max_size=6),
)
LINES = st.builds(
    lambda word, end: (wire.TEXT, word.rstrip(b"\r"), word.rstrip(b"\r") + end),
    st.binary(min_size=1, max_size=40).map(lambda raw: b"x" + raw.replace(b"\n", b"")),
    st.sampled_from([b"\n", b"\r\n"]),
)
STREAMS = st.lists(PACKETS | LINES, max_size=8)
GARBAGE = st.lists(
    st.binary(max_size=60)
    | st.just(b"\0REQ")
    | st.just(b"\0RES")
    | st.integers(0, 2**32 - 1).map(lambda n: n.to_bytes(4, "big"))
    | st.integers(0, 50).map(lambda n: n.to_bytes(4, "big"))
    | PACKETS.map(lambda packet: packet[2]),
    max_size=12,
).map(b"".join)


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    """The stream in pieces."""
    edges = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[a:b] for a, b in itertools.pairwise(edges) if b > a]


def outcome(chunks: list[bytes]) -> list[object]:
    """What a reader says of these chunks, up to a fatal error."""
    reader = wire.Reader(max_packet=1000)
    said: list[object] = []
    for chunk in chunks:
        reader.feed(chunk)
        while True:
            try:
                kind = reader.next()
            except WireError as error:
                said.append((error.code, error.fatal))
                if error.fatal:
                    return said
                continue
            if kind == wire.MORE:
                break
            said.append((kind, reader.data[reader.start : reader.end]))
    return said


@given(STREAMS, st.lists(st.integers(0, 10_000), max_size=10))
def test_round_trip_however_it_is_cut(stream: list[tuple[int, bytes, bytes]], places: list[int]) -> None:
    whole = b"".join(raw for _, _, raw in stream)
    assert outcome(cut(whole, places)) == [(kind, body) for kind, body, _ in stream]


@given(GARBAGE, st.lists(st.integers(0, 10_000), max_size=10))
def test_garbage_is_refused_the_same_way_however_it_is_cut(stream: bytes, places: list[int]) -> None:
    assert outcome(cut(stream, places)) == outcome([stream] if stream else [])


@given(st.sampled_from(sorted(wire.FIELDS)), st.binary(max_size=60))
def test_fields_are_complete_or_refused(kind: int, body: bytes) -> None:
    try:
        found = wire.fields(kind, body, 0, len(body))
    except WireError:
        assert body.count(b"\0") < wire.FIELDS[kind] - 1
    else:
        assert len(found) == wire.FIELDS[kind]
        assert b"\0".join(found) == body
