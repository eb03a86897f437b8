"""A short campaign for every codec, and campaigns against codecs that are broken: they have to notice."""

from collections.abc import Callable
from pathlib import Path

import pytest

from campaigns import codec_campaign
from campaigns.codec_campaign import CodecCampaign, CodecFaultError, LastStream
from campaigns.codecs.codec import Codec, Packet, Stream
from campaigns.codecs.table import CODECS
from geartrain.errors import WireError

SEED = 20260101
FRAMES = 2000


@pytest.mark.parametrize("name", CODECS)
def test_codec_gives_packets_or_wire_errors(name: str) -> None:
    figures = CodecCampaign(CODECS[name], SEED).run(frames=FRAMES)
    assert figures.frames >= FRAMES
    assert figures.packets > 0
    assert figures.outcomes > 1 or name == "event-stream"
    assert CODECS[name].in_messages or figures.compared > 0


def test_seed_repeats_a_campaign() -> None:
    def campaign(seed: int) -> tuple[int, ...]:
        figures = CodecCampaign(CODECS["gearman"], seed).run(frames=FRAMES)
        return (figures.streams, figures.frames, figures.packets, figures.bytes, figures.outcomes)

    assert campaign(1) == campaign(1) != campaign(2)


class LineReader:
    """A small codec: lines, of which one that begins with `!` is refused."""

    def __init__(self, on_line: Callable[[bytes], None] = lambda line: None, forgets: bool = False) -> None:
        self._on_line = on_line
        self._forgets = forgets  # drops an incomplete line when more arrives
        self._data = b""

    def feed(self, data: bytes) -> None:
        self._data = data if self._forgets else self._data + data

    def packet(self) -> Packet | None:
        line, end, rest = self._data.partition(b"\n")
        if not end:
            return None
        self._data = rest
        if line.startswith(b"!"):
            raise WireError("REFUSED", "a line begins with an exclamation mark", fatal=False)
        self._on_line(line)
        return ("line", line)


def lines(make: Callable[[], LineReader]) -> Codec:
    def open_stream() -> Stream:
        reader = make()
        return Stream(reader.feed, reader.packet)

    return Codec("lines", (b"one line\n", b"!another\n", b"number 12\n"), open_stream)


def test_working_codec_passes() -> None:
    figures = CodecCampaign(lines(LineReader), SEED).run(frames=FRAMES)
    assert figures.errors > 0


def test_other_exception_is_a_fault_and_its_chunks_repeat_it() -> None:
    def refuse_numbers(line: bytes) -> None:
        if line.startswith(b"number"):
            int(line.removeprefix(b"number"))

    codec = lines(lambda: LineReader(refuse_numbers))
    with pytest.raises(CodecFaultError, match="ValueError") as fault:
        CodecCampaign(codec, SEED).run(frames=FRAMES)
    with pytest.raises(ValueError, match="invalid literal"):
        codec.read(fault.value.chunks)


def test_packet_lost_between_two_chunks_is_a_fault() -> None:
    with pytest.raises(CodecFaultError, match="in pieces it gives"):
        CodecCampaign(lines(lambda: LineReader(forgets=True)), SEED).run(frames=FRAMES)


def test_growing_memory_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = iter((1000, 2000, 1001 + codec_campaign.ALLOWED_GROWTH))
    monkeypatch.setattr(codec_campaign, "memory", lambda: next(sizes))
    with pytest.raises(CodecFaultError, match="memory grew"):
        CodecCampaign(lines(LineReader), SEED).run(frames=FRAMES)


def test_stream_that_ends_the_process_can_be_read_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "last"
    last_stream = LastStream(path)
    last_stream.write([b"first", b"stream"])
    last_stream.write([b"\0REQ", b"\n"])
    assert codec_campaign.parse_chunks(LastStream.read(path)) == [b"\0REQ", b"\n"]
