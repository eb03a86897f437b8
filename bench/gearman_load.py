"""The load generator in C, compiled and run: bench/gearman_load.c says what it does."""

import json
import subprocess
from pathlib import Path
from typing import NamedTuple

from bench import contenders
from bench.contenders import Place
from bench.figures import Sample

SOURCE = Path(__file__).with_suffix(".c")
RUN_SECONDS = 300  # longer than the slowest row takes on a slow machine


class LoadError(Exception):
    """The load generator could not be compiled, or a run of it failed."""


class Work(NamedTuple):
    """One run of the load generator."""

    title: str
    mode: str
    jobs: int
    clients: int = 0
    window: int = 0  # jobs that each client has in flight
    workers: int = 0


def compile_into(folder: Path, source: Path = SOURCE) -> Path:
    """The program."""
    program = folder / source.stem
    command = ["cc", "-O2", "-o", str(program), str(source), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LoadError(f"{source.name} could not be compiled:\n{done.stderr}")
    return program


def run(program: Path, place: Place, work: Work, payload: int, worker_port: int = 0, function: str = "echo") -> Sample:
    """The jobs per second of a run, and what the server and the load used of their processors.

    The load runs on the cores of this process. With `worker_port`, the workers are at another server. Runs at the same
    time on servers of one cluster need functions of their own: each counts the jobs of its own workers.
    """
    counts = (work.jobs, work.clients, work.window, work.workers, payload)
    shape = (place.port, work.mode, *counts, worker_port or place.port, function)
    before = contenders.processor_seconds(place.pid)
    try:
        done = subprocess.run(
            [str(program), *map(str, shape)], capture_output=True, text=True, timeout=RUN_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise LoadError(f"{work.title}: not finished after {RUN_SECONDS} seconds") from None
    if done.returncode:
        raise LoadError(f"{work.title}: {done.stderr.strip() or f'exit code {done.returncode}'}")
    used = contenders.processor_seconds(place.pid) - before
    result = json.loads(done.stdout)
    return Sample(
        value=result["jobs"] / result["seconds"],
        server_us=used / result["jobs"] * 1e6,
        load_busy=result["processor_seconds"] / result["seconds"],
    )
