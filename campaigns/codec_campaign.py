"""Feed one codec mutated streams, and check what comes out.

Three rules hold for every stream: the reader gives packets or raises a WireError, nothing else; a stream that is fed
whole and in pieces gives the same packets and the same errors; and memory does not grow.

Streams with an outcome that was not seen before are kept, and later mutations begin with them too. The campaign of a
codec runs in a process of its own, because a fault of the compiled core can end the process: the stream is written to
a file before it is read, where whoever started the process finds it.
"""

import argparse
import dataclasses
import faulthandler
import json
import mmap
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from campaigns.codecs.codec import Codec, Outcome, Refusal, comparable
from campaigns.codecs.table import CODECS
from campaigns.mutation import MOST_FRAMES, Mutator
from geartrain import compiled

# Memory may grow by this much after the first part of a campaign: caches have a bound and are full by then.
ALLOWED_GROWTH = 16 * 1024  # KiB
_COMPARE_EVERY = 8  # streams
_CHECK_EVERY = 256  # streams, between two looks at the clock
_LAST_STREAM_SIZE = 1 << 20
_VARIABLE = re.compile(r"0x[0-9A-Fa-f]+|[0-9]+|b?'.*'|b?\".*\"")
_PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024


class CodecFaultError(Exception):
    """A codec broke one of the rules. `chunks` repeat it."""

    def __init__(self, codec: str, text: str, chunks: Sequence[bytes]) -> None:
        super().__init__(f"{codec}: {text}")
        self.codec = codec
        self.text = text
        self.chunks = list(chunks)


@dataclasses.dataclass
class CodecFigures:
    """What a campaign tried."""

    codec: str
    seed: int
    core: str  # compiled or pure
    streams: int = 0
    frames: int = 0  # packets that were read, and errors
    packets: int = 0
    errors: int = 0
    bytes: int = 0
    outcomes: int = 0  # distinct ones
    compared: int = 0  # streams that were fed whole and in pieces
    seconds: float = 0.0
    slowest: float = 0.0  # seconds of one stream
    memory: list[int] = dataclasses.field(default_factory=list)  # KiB: after a tenth, in the middle, at the end

    @property
    def growth(self) -> int:
        """KiB."""
        return self.memory[-1] - self.memory[0] if self.memory else 0


class LastStream:
    """A file that holds the stream that is being read, and outlives this process."""

    def __init__(self, path: Path) -> None:
        with path.open("w+b") as file:
            file.truncate(_LAST_STREAM_SIZE)
            self._map = mmap.mmap(file.fileno(), _LAST_STREAM_SIZE)

    def write(self, chunks: Sequence[bytes]) -> None:
        text = b" ".join(chunk.hex().encode() for chunk in chunks)[: _LAST_STREAM_SIZE - 1]
        self._map[: len(text) + 1] = text + b"\n"

    @staticmethod
    def read(path: Path) -> str:
        return path.read_bytes().partition(b"\n")[0].decode() if path.exists() else ""


class CodecCampaign:
    """The streams of one seed."""

    def __init__(self, codec: Codec, seed: int, last_stream: LastStream | None = None) -> None:
        self._codec = codec
        self._chance = random.Random(f"{codec.name} {seed}")
        self._mutator = Mutator(self._chance, codec.bodies, codec.wrap, codec.tokens)
        self._seeds = len(codec.bodies)
        self._openings = Mutator(self._chance, codec.openings, tokens=codec.tokens)
        self._last_stream = last_stream
        self._seen: Counter[object] = Counter()
        self.figures = CodecFigures(codec.name, seed, compiled.form())

    def run(self, seconds: float = float("inf"), frames: int = sys.maxsize) -> CodecFigures:
        """Until either bound is reached; a CodecFaultError ends it before."""
        figures = self.figures
        began = time.monotonic()
        marks = [0.1, 0.5]  # shares of the work after which memory is looked at; the last look is at the end
        share = 0.0
        while share < 1.0:
            for _ in range(_CHECK_EVERY):
                self._one_stream()
            figures.seconds = time.monotonic() - began
            share = max(figures.seconds / seconds, figures.frames / frames)
            while marks and share >= marks[0]:
                marks.pop(0)
                figures.memory.append(memory())
        figures.memory.append(memory())
        figures.outcomes = len(self._seen)
        if figures.growth > ALLOWED_GROWTH:
            raise CodecFaultError(self._codec.name, f"memory grew by {figures.growth} KiB", [])
        return figures

    def _one_stream(self) -> None:
        codec, figures = self._codec, self.figures
        # After a fatal error nothing is read: streams are about as long as the reader reads on.
        frames = self._mutator.stream(min(2 + 3 * figures.frames // max(figures.streams, 1), MOST_FRAMES))
        opening = self._opening()
        whole = b"".join((opening, *frames))
        chunks = frames if codec.in_messages else self._mutator.chunks(whole)
        if self._last_stream is not None:
            self._last_stream.write(chunks)
        began = time.perf_counter()
        outcomes = read(codec, chunks)
        taken = time.perf_counter() - began
        if taken > figures.slowest:
            figures.slowest = taken
        figures.streams += 1
        figures.bytes += len(whole)
        self._count(outcomes)
        if not codec.in_messages and figures.streams % _COMPARE_EVERY == 0:
            figures.compared += 1
            compare(codec, chunks, outcomes)

    def _opening(self) -> bytes:
        """Valid nine times out of ten: after an invalid one nothing else is read."""
        if self._chance.random() < 0.1:
            return self._openings.mutated(self._openings.pick(self._codec.openings), in_header=0.2)
        return self._openings.pick(self._codec.openings)

    def _count(self, outcomes: list[Outcome]) -> None:
        figures, seen = self.figures, self._seen
        known = len(seen)
        for outcome in outcomes:
            if isinstance(outcome, Refusal):
                figures.errors += 1
                seen[(outcome.code, _VARIABLE.sub("", outcome.text))] += 1
            else:
                figures.packets += 1
                seen[(outcome[0], len(outcome))] += 1
        figures.frames = figures.packets + figures.errors
        if len(seen) > known:
            self._keep(self._mutator.used)

    def _keep(self, mutated: list[bytes]) -> None:
        """Begin later mutations with these bodies as well."""
        bodies = self._mutator.bodies
        for body in mutated:
            if len(bodies) < 2 * self._seeds:
                bodies.append(body)
            else:
                bodies[self._seeds + self._mutator.below(self._seeds)] = body


def read(codec: Codec, chunks: Sequence[bytes]) -> list[Outcome]:
    """The outcomes of a stream; a CodecFaultError for anything but packets and WireErrors."""
    try:
        return codec.read(chunks)
    except Exception as error:
        raise CodecFaultError(codec.name, f"{type(error).__name__}: {error}", chunks) from error


def compare(codec: Codec, chunks: Sequence[bytes], outcomes: list[Outcome]) -> None:
    """Feed the stream whole: the outcomes have to be the same."""
    whole = read(codec, [b"".join(chunks)])
    if not codec.keeps_packets_before_error and any(isinstance(outcome, Refusal) for outcome in (*whole, *outcomes)):
        return
    if list(comparable(whole)) != list(comparable(outcomes)):
        text = f"in pieces it gives {outcomes[-3:]!r}, and as a whole {whole[-3:]!r} (the last three of each)"
        raise CodecFaultError(codec.name, text, chunks)


def memory() -> int:
    """The resident memory of this process in KiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_KIB


def parse_chunks(text: str) -> list[bytes]:
    """Chunks as a fault prints them: in hexadecimal, separated by spaces."""
    return [bytes.fromhex(word) for word in text.split()]


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run the campaign of one codec; the result is a line of JSON.")
    parser.add_argument("codec", choices=CODECS)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--frames", type=int, default=sys.maxsize)
    parser.add_argument("--last-stream", type=Path)
    options = parser.parse_args(words)
    faulthandler.enable()
    last_stream = LastStream(options.last_stream) if options.last_stream else None
    campaign = CodecCampaign(CODECS[options.codec], options.seed, last_stream)
    try:
        campaign.run(options.seconds, options.frames)
    except CodecFaultError as fault:
        chunks = " ".join(chunk.hex() for chunk in fault.chunks)
        print(json.dumps({**dataclasses.asdict(campaign.figures), "fault": fault.text, "chunks": chunks}))
        return 1
    print(json.dumps(dataclasses.asdict(campaign.figures)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
