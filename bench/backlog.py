"""A backlog larger than memory: what it takes of memory, and how fast workers empty it.

    python bench/backlog.py                          1,000,000 jobs of 10 kB: more than 10 GB of disk for a while
    python bench/backlog.py --jobs 10000000 --size 64 --no-drain
    python bench/backlog.py --jobs 100000 --dir /mnt/disk --json

A server with the SQLite store is filled and drained twice: with payloads on disk, as `--payload-memory` says, and with
all of them in memory. The second time there may be fewer jobs, so that they fit: `--warm-jobs`. The load is a program
in C (`bench/gearman_load.c`). Memory is the resident set of the server, before and after the jobs.
"""

import argparse
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from bench import gearman_load

WORKERS, CLIENTS, WINDOW = 8, 8, 64
START_SECONDS = 60.0
MOST_MEMORY = 700 * 10**6  # bytes with 1,000,000 jobs of 10 kB
MOST_PER_JOB = 300  # bytes with 10,000,000 jobs of 64 bytes
LEAST_RATE = 0.8  # of that with all payloads in memory


class Backlog(NamedTuple):
    """What one run found."""

    jobs: int
    empty: int  # bytes of memory before the jobs
    full: int  # and with all of them
    peak: int  # the most there were at any time
    fill_seconds: float
    drain_seconds: float  # 0: it was not drained
    processor_seconds: float  # of the server, while it was drained

    @property
    def rate(self) -> float:
        return self.jobs / self.drain_seconds if self.drain_seconds else 0.0

    @property
    def bytes_per_job(self) -> float:
        return (self.full - self.empty) / self.jobs


def run(folder: pathlib.Path, program: pathlib.Path, jobs: int, size: int, memory: str, drain: bool) -> Backlog:
    """Fill a server, and drain it."""
    command = [
        sys.executable, "-m", "geartrain", "serve", "--listen", "gearman://127.0.0.1:0", "--payload-memory", memory,
        "--max-queued-bytes", str(2**40), "--store", f"sqlite://{folder}/backlog-{memory}.db",
    ]  # fmt: skip
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline().rpartition(":")[2])
        empty = _memory(server.pid, "VmRSS")
        filled = _load(program, port, "background", jobs, size)
        full = _memory(server.pid, "VmRSS")
        before = _processor_seconds(server.pid)
        drained = _load(program, port, "drain", jobs, size) if drain else 0.0
        took = _processor_seconds(server.pid) - before
        return Backlog(jobs, empty, full, _memory(server.pid, "VmHWM"), filled, drained, took if drain else 0.0)
    finally:
        server.kill()
        server.wait()
        for file in folder.glob(f"backlog-{memory}.db*"):
            file.unlink()


def _load(program: pathlib.Path, port: int, mode: str, jobs: int, size: int) -> float:
    words = [str(word) for word in (program, port, mode, jobs, CLIENTS, WINDOW, WORKERS, size, port, "echo")]
    began = time.monotonic()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def _memory(pid: int, name: str) -> int:
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split(f"{name}:")[1].split()[0]) * 1024


def _processor_seconds(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def table(cold: Backlog, warm: Backlog | None, size: int) -> str:
    lines = [f"{cold.jobs:,} jobs of {size:,} bytes, payloads on disk"]
    lines.append(f"    memory        {cold.full / 1e6:10,.0f} MB, peak {cold.peak / 1e6:,.0f} MB")
    lines.append(f"    for each job  {cold.bytes_per_job:10,.0f} bytes")
    lines.append(f"    filled at     {cold.jobs / cold.fill_seconds:10,.0f} jobs/s")
    if cold.rate:
        each = cold.processor_seconds / cold.jobs * 1e6
        lines.append(f"    drained at    {cold.rate:10,.0f} jobs/s, {each:.1f} us of processor time each")
    if warm is not None:
        each = warm.processor_seconds / warm.jobs * 1e6
        lines.append(f"{warm.jobs:,} of them, payloads in memory: {warm.full / 1e6:,.0f} MB")
        lines.append(f"    drained at    {warm.rate:10,.0f} jobs/s, {each:.1f} us of processor time each")
        lines.append(f"    ratio         {cold.rate / warm.rate:10.2f}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--warm-jobs", type=int, default=200_000, help="with all payloads in memory; 0: leave that out")
    parser.add_argument("--size", type=int, default=10_000, help="bytes of a payload")
    parser.add_argument("--payload-memory", default="256MiB")
    parser.add_argument("--no-drain", action="store_true", help="measure memory alone")
    parser.add_argument("--dir", help="for the store; the default is the folder for temporary files")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.dir)))
        program = gearman_load.compile_into(folder)
        drain = not options.no_drain
        cold = run(folder, program, options.jobs, options.size, options.payload_memory, drain)
        warm = None
        if drain and options.warm_jobs:
            warm = run(folder, program, min(options.warm_jobs, options.jobs), options.size, "0", drain)
    if options.json:
        print(json.dumps({"cold": cold._asdict(), "warm": None if warm is None else warm._asdict()}))
    else:
        print(table(cold, warm, options.size))


if __name__ == "__main__":
    main()
