"""Whatever arrives, the codec gives frames or a WireError, and the same ones however it is cut."""

import contextlib
import itertools
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from geartrain.errors import WireError
from geartrain.wire import periodic as wire

DIALECTS = st.sampled_from([wire.DOCUMENT, wire.TODAY])
NAMES = st.binary(max_size=255)
I32 = st.integers(-(2**31), 2**31 - 1)
I64 = st.integers(-(2**63), 2**63 - 1)
JOBS = st.builds(wire.PeriodicJob, NAMES, NAMES, st.binary(max_size=300), I64, I32 | st.just(0), I32 | st.just(0))
FIRST = st.sampled_from([wire.CLIENT, wire.WORKER]).map(lambda kind: bytes([kind]))
NAMED = st.builds(
    lambda kind, name, token: bytes([kind]) + wire.identity(name, token),
    st.sampled_from([wire.NAMED_CLIENT, wire.NAMED_WORKER]),
    st.binary(max_size=300),
    st.binary(max_size=40),
)
PAYLOADS = st.lists(st.binary(max_size=80), max_size=8)
PLACES = st.lists(st.integers(0, 10_000), max_size=10)
GARBAGE = st.lists(
    st.binary(max_size=60)
    | st.sampled_from([wire.REQUEST, wire.RESPONSE, b"\0\0\0\1\1", b"\0\0\0\1\x3c\x0c\x8e\xa1\2"])
    | st.integers(0, 2**32 - 1).map(lambda n: n.to_bytes(4, "big"))
    | st.integers(0, 50).map(lambda n: n.to_bytes(4, "big"))
    | st.builds(wire.frame, DIALECTS, st.just(wire.REQUEST), FIRST | st.binary(max_size=50)),
    max_size=12,
).map(b"".join)


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    """The stream in pieces."""
    edges = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[a:b] for a, b in itertools.pairwise(edges) if b > a]


def outcome(chunks: list[bytes]) -> list[object]:
    """What a reader says of these chunks, up to an error."""
    reader = wire.Reader(max_packet=1000)
    said: list[object] = []
    for chunk in chunks:
        reader.feed(chunk)
        try:
            while reader.next() == wire.FRAME:
                said.append((reader.dialect.name, reader.data[reader.start : reader.end]))
        except WireError as error:
            return [*said, error.code]
    return said


@given(DIALECTS, FIRST, PAYLOADS, PLACES)
def test_round_trip_however_it_is_cut(
    dialect: wire.Dialect, first: bytes, payloads: list[bytes], places: list[int]
) -> None:
    """The first frame tells the dialect, and the rest follows it."""
    stream = b"".join(wire.frame(dialect, wire.REQUEST, payload) for payload in (first, *payloads))
    assert outcome(cut(stream, places)) == [(dialect.name, payload) for payload in (first, *payloads)]


@given(NAMED, PAYLOADS, PLACES)
def test_who_gives_a_name_speaks_today_s_dialect(first: bytes, payloads: list[bytes], places: list[int]) -> None:
    stream = b"".join(wire.frame(wire.TODAY, wire.REQUEST, payload) for payload in (first, *payloads))
    assert outcome(cut(stream, places)) == [("today", payload) for payload in (first, *payloads)]


@given(GARBAGE, PLACES)
def test_garbage_is_refused_the_same_way_however_it_is_cut(stream: bytes, places: list[int]) -> None:
    assert outcome(cut(stream, places)) == outcome([stream] if stream else [])


@given(DIALECTS, FIRST, st.binary(min_size=1, max_size=60), st.integers(0, 10_000), st.integers(0, 7))
def test_one_wrong_bit_is_noticed_where_there_is_a_crc(
    dialect: wire.Dialect, first: bytes, payload: bytes, place: int, bit: int
) -> None:
    stream = bytearray(wire.frame(dialect, wire.REQUEST, payload))
    at = 8 + place % (len(stream) - 8)
    stream[at] ^= 1 << bit
    said = outcome([wire.frame(dialect, wire.REQUEST, first) + bytes(stream)])
    assert said[1:] == ["CRC"] if dialect.crc else said[1:] != [(dialect.name, payload)]


@given(JOBS)
def test_jobs_round_trip(job: wire.PeriodicJob) -> None:
    data = wire.job(job)
    arguments = wire.Arguments(b"??" + data + b"!!", 2, 2 + len(data))
    assert arguments.job() == job
    assert arguments.left() == 0


@given(JOBS)
def test_jobs_from_before_versions_round_trip(job: wire.PeriodicJob) -> None:
    fields = (job.function, job.name, job.payload, job.run_at)
    plain = wire.job(wire.PeriodicJob(*fields))[:-1] + job.steps.to_bytes(4, "big", signed=True)
    assert wire.Arguments(plain, 0, len(plain)).job() == wire.PeriodicJob(*fields, job.steps)


@given(st.lists(JOBS, max_size=5))
def test_dumps_round_trip(jobs: list[wire.PeriodicJob]) -> None:
    data = wire.jobs(jobs)
    assert wire.Arguments(data, 0, len(data)).jobs() == jobs


@given(I64, st.integers(-(2**15), 2**15 - 1), NAMES, st.integers(0, 2**32 - 1))
def test_other_arguments_round_trip(delay: int, step: int, name: bytes, value: int) -> None:
    data = wire.later(delay, step) + wire.short(name) + wire.limit(step) + wire.value(value)
    arguments = wire.Arguments(data, 0, len(data))
    assert arguments.later() == (delay, step)
    assert (arguments.short(), arguments.limit(), arguments.value()) == (name, step, value)
    assert arguments.rest() == b""


TAKES: list[Callable[[wire.Arguments], object]] = [
    wire.Arguments.kind,
    wire.Arguments.short,
    wire.Arguments.job,
    wire.Arguments.jobs,
    wire.Arguments.later,
    wire.Arguments.limit,
    wire.Arguments.value,
    wire.Arguments.identity,
    wire.Arguments.rest,
]


@given(st.lists(st.sampled_from(TAKES), max_size=4), st.binary(max_size=60))
def test_arguments_are_complete_or_refused(takes: list[Callable[[wire.Arguments], object]], data: bytes) -> None:
    arguments = wire.Arguments(data, 0, len(data))
    with contextlib.suppress(WireError):
        for take in takes:
            take(arguments)
            assert arguments.left() >= 0
