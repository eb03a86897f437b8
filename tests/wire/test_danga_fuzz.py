"""Whatever arrives, the codec gives packets or a WireError, and the same ones however it is cut."""

import contextlib
import itertools

from hypothesis import given
from hypothesis import strategies as st

from geartrain.errors import WireError
from geartrain.wire import danga as wire

NAMES = st.binary(min_size=1, max_size=20).map(lambda raw: raw.replace(b"\0", b"n"))
KEYS = NAMES | st.just(b"")
BYTES = st.integers(0, 255)
WORDS = st.integers(0, wire.UINT32)
DATA = st.binary(max_size=60)
HANDLES = NAMES

# For every type: what is said, the packet that says it, and how it is read.
REQUESTS = st.one_of(
    st.lists(NAMES, max_size=5).map(lambda names: (names, wire.worker_connect(names), wire.job_names)),
    st.sampled_from([wire.worker_disconnect(), wire.worker_sleep(), wire.job_assign_req()]).map(
        lambda packet: (b"", packet, bytes)
    ),
    st.builds(
        lambda name, key, flags, type, args: (
            (name, key, flags, type, args),
            wire.job_create_req(name, key, type, args, flags),
            wire.creation,
        ),
        NAMES, KEYS, BYTES, st.integers(0, 2), DATA,
    ),
    st.tuples(WORDS, WORDS, WORDS).map(lambda said: (said, wire.job_status_announce(*said), wire.status)),
    HANDLES.map(lambda handle: (handle, wire.job_status_req(handle), wire.handle)),
    HANDLES.map(lambda handle: (handle, wire.job_complete_req(handle), wire.handle)),
    st.tuples(BYTES, DATA).map(lambda said: (said, wire.job_complete_announce(*said), wire.outcome)),
)  # fmt: skip
RESPONSES = st.one_of(
    st.just((b"", wire.noop(), bytes)),
    HANDLES.map(lambda handle: (handle, wire.job_create_res(handle), wire.handle)),
    st.just((None, wire.NO_JOB_PACKET, wire.assignment)),
    st.tuples(NAMES, DATA).map(lambda said: (said, wire.job_assign_res(*said), wire.assignment)),
    st.tuples(WORDS, WORDS, WORDS).map(lambda said: (said, wire.job_status_res(*said), wire.status)),
    st.tuples(WORDS, BYTES, DATA).map(lambda said: (said, wire.job_complete_res(*said), wire.completion)),
)
PLACES = st.lists(st.integers(0, 10_000), max_size=10)
GARBAGE = st.lists(
    st.binary(max_size=40)
    | st.sampled_from([wire.REQUEST, wire.RESPONSE, b"\0REQ\x06", b"\0REQ\x04\0\0\0\x06", b"\0\0\0\0"])
    | st.integers(0, 20).map(lambda n: bytes([n]))
    | (REQUESTS | RESPONSES).map(lambda packet: packet[1]),
    max_size=12,
).map(b"".join)


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    """The stream in pieces."""
    edges = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[a:b] for a, b in itertools.pairwise(edges) if b > a]


def outcome(chunks: list[bytes], magic: bytes) -> list[object]:
    """What a reader says of these chunks, up to an error."""
    reader = wire.Reader(max_packet=1000, magic=magic)
    said: list[object] = []
    for chunk in chunks:
        reader.feed(chunk)
        while True:
            try:
                kind = reader.next()
            except WireError as error:
                return [*said, (error.code, error.fatal)]
            if kind == wire.MORE:
                break
            said.append((kind, reader.body))
    return said


@given(st.lists(REQUESTS, max_size=8) | st.lists(RESPONSES, max_size=8), PLACES)
def test_round_trip_however_it_is_cut(stream: list, places: list[int]) -> None:  # type: ignore[type-arg]
    whole = b"".join(packet for _, packet, _ in stream)
    found = outcome(cut(whole, places), whole[:4] or wire.REQUEST)
    assert [read(body) for (_, body), (_, _, read) in zip(found, stream, strict=True)] == [
        said for said, _, _ in stream
    ]


@given(GARBAGE, PLACES, st.sampled_from([wire.REQUEST, wire.RESPONSE]))
def test_garbage_is_refused_the_same_way_however_it_is_cut(stream: bytes, places: list[int], magic: bytes) -> None:
    assert outcome(cut(stream, places), magic) == outcome([stream] if stream else [], magic)


@given(st.binary(max_size=60), st.sampled_from([wire.job_names, wire.creation, wire.assignment, wire.handle]))
def test_bodies_are_read_or_refused(body: bytes, read) -> None:  # type: ignore[no-untyped-def]
    with contextlib.suppress(WireError):  # any other exception fails the test
        read(body)
