"""Fuzz every codec and every door for a while, and print what was tried.

    python -m campaigns.fuzz                          every codec and door, 60 seconds together
    python -m campaigns.fuzz --seconds 600 gearman    one codec for ten minutes
    python -m campaigns.fuzz --seconds 60 door:http   one door
    python -m campaigns.fuzz --seed 7                 the streams of an earlier run
    python -m campaigns.fuzz gearman --chunks "005245 51"    one stream, as a fault prints it

The exit code is 1 if there was a fault. A codec's campaign runs in a process of its own, so that a fault which ends the
process is reported as well.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from campaigns import codec_campaign
from campaigns.codecs.table import CODECS
from campaigns.door_campaign import DoorCampaign, DoorFaultError
from campaigns.doors import DOORS
from geartrain import compiled

ROOT = Path(__file__).parent.parent
SECONDS = 60.0
DOOR_PREFIX = "door:"
_MORE_SECONDS = 60.0  # that a process may take beyond its time before it counts as stuck
_CODEC_ROW = "{:<18} {:>10} {:>9} {:>9} {:>9} {:>8} {:>7} {:>8} {:>7}  {}"
_DOOR_ROW = "{:<18} {:>10} {:>9} {:>9} {:>9} {:>8} {:>7} {:>8} {:>7}  {}"


def names() -> list[str]:
    """Everything that can be fuzzed."""
    return [*CODECS, *(DOOR_PREFIX + name for name in DOORS)]


def fuzz_codec(name: str, seed: int, seconds: float, home: Path) -> bool:
    """One line of figures; whether there was no fault."""
    last_stream = home / "last-stream"
    command = [sys.executable, "-m", "campaigns.codec_campaign", name]
    command += ["--seed", str(seed), "--seconds", str(seconds), "--last-stream", str(last_stream)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        output, _ = process.communicate(timeout=seconds + _MORE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
        report_fault(name, seed, "it does not return from a stream", codec_campaign.LastStream.read(last_stream))
        return False
    if not output:
        text = f"its process ended with exit code {process.returncode}"
        report_fault(name, seed, text, codec_campaign.LastStream.read(last_stream))
        return False
    figures = json.loads(output)
    print(codec_row(figures), flush=True)
    if "fault" in figures:
        report_fault(name, seed, figures["fault"], figures["chunks"])
    return "fault" not in figures


def codec_row(figures: dict[str, Any]) -> str:
    memory = " ".join(f"{kib / 1024:.1f}" for kib in figures["memory"])
    return _CODEC_ROW.format(
        figures["codec"],
        figures["frames"],
        figures["packets"],
        figures["errors"],
        figures["outcomes"],
        f"{figures['bytes'] / 1e6:.1f}",
        figures["compared"],
        f"{figures['seconds']:.1f}",
        f"{figures['slowest'] * 1000:.1f}",
        memory,
    )


def fuzz_door(name: str, seed: int, seconds: float, home: Path) -> bool:
    """One line of figures; whether there was no fault."""
    campaign = DoorCampaign(DOORS[name], seed, home)
    fault = None
    try:
        campaign.run(seconds)
    except DoorFaultError as error:
        fault = error
    figures = campaign.figures
    memory = " ".join(f"{kib / 1024:.1f}" for kib in figures.memory)
    row = (figures.frames, figures.bursts, figures.connections, figures.answers, f"{figures.sent / 1e6:.1f}")
    more = (f"{figures.received / 1e6:.1f}", f"{figures.seconds:.1f}", figures.restarts, memory)
    print(_DOOR_ROW.format(name, *row, *more), flush=True)
    if fault is not None:
        print("The last bursts, by connection, in hexadecimal:")
        for number, data in campaign.recent:
            print(f"  {number}: {data.hex()}")
        report_fault(DOOR_PREFIX + name, seed, str(fault), "")
    return fault is None


def report_fault(name: str, seed: int, text: str, chunks: str) -> None:
    """What happened, and how to see it again."""
    print(f"FAULT in {name}: {text}")
    print(f"  repeat the run:    make fuzz FUZZ_SEED={seed} FUZZ_ONLY={name}")
    if chunks:
        print(f'  repeat the stream: python -m campaigns.fuzz {name} --chunks "{chunks}"')
    sys.stdout.flush()


def replay(name: str, chunks: str) -> int:
    """Read one stream again, whole and in pieces, and print what comes out; exceptions are not caught."""
    codec = CODECS[name]
    outcomes = codec.read(codec_campaign.parse_chunks(chunks))
    for outcome in outcomes:
        print(outcome)
    if not codec.in_messages:
        codec_campaign.compare(codec, codec_campaign.parse_chunks(chunks), outcomes)
    return 0


def run(chosen: Sequence[str], seed: int, seconds: float) -> bool:
    """Fuzz these one after the other; whether there was no fault."""
    each = seconds / len(chosen)
    core = compiled.form()
    print(f"seed {seed}; {each:.1f} s each for {len(chosen)} codecs and doors; the core is {core}", flush=True)
    codecs = [name for name in chosen if not name.startswith(DOOR_PREFIX)]
    doors = [name.removeprefix(DOOR_PREFIX) for name in chosen if name.startswith(DOOR_PREFIX)]
    faultless = True
    with tempfile.TemporaryDirectory(prefix="geartrain-fuzz-") as home:
        if codecs:
            titles = ("frames", "packets", "errors", "outcomes", "MB", "cut", "seconds", "slow ms", "memory MiB")
            print(_CODEC_ROW.format("codec", *titles))
        for name in codecs:
            faultless &= fuzz_codec(name, seed, each, Path(home))
        if doors:
            titles = ("frames", "bursts", "peers", "answers", "MB out", "MB in", "seconds", "stopped", "memory MiB")
            print(_DOOR_ROW.format("door", *titles))
        for name in doors:
            faultless &= fuzz_door(name, seed, each, Path(home))
    return faultless


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="*", metavar="NAME", help="a codec, or a door with `door:` before its name")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for all of them together")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--chunks", help="read this stream with one codec: chunks in hexadecimal")
    parser.add_argument("--list", action="store_true", help="list codecs and doors")
    options = parser.parse_args(words)
    unknown = [name for name in options.only if name not in names()]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(names())}")
    if options.list:
        print("\n".join(names()))
        return 0
    if options.chunks is not None:
        return replay(options.only[0], options.chunks)
    seed = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
    return 0 if run(options.only or names(), seed, options.seconds) else 1


if __name__ == "__main__":
    raise SystemExit(main())
