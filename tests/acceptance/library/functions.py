"""Functions that can be sent to another process."""

import os
import threading
import time
from pathlib import Path

import geartrain


def talk(job: geartrain.Job) -> bytes:
    job.progress(1, 2)
    job.data("part")
    job.warn(b"careful")
    return job.payload[::-1]


def fail(job: geartrain.Job) -> bytes:
    raise KeyError("nothing here")


def names(job: geartrain.Job) -> str:
    return f"{job.function} {job.handle} {job.unique}"


def whereabouts(job: geartrain.Job) -> str:
    return f"{os.getpid()} {threading.get_ident()}"


def sleep_or_say_where(job: geartrain.Job) -> str:
    """With the path of a file as payload: write the process's id there, and sleep."""
    if job.payload:
        Path(job.payload.decode()).write_text(str(os.getpid()))
        time.sleep(3600)
    return str(os.getpid())


def die(job: geartrain.Job) -> bytes:
    os._exit(7)


def meet(job: geartrain.Job) -> str:
    """Wait in a folder until three are there; threads and processes have no other place in common."""
    folder = Path(job.payload.decode())
    (folder / f"{os.getpid()}-{threading.get_ident()}").touch()
    deadline = time.monotonic() + 20
    while len(list(folder.iterdir())) < 3:
        if time.monotonic() > deadline:
            raise TimeoutError("the others did not come")
        threading.Event().wait(0.01)
    return "3"


def wait_for_gate(job: geartrain.Job) -> str:
    """Say that it runs, and go on when the gate (a file that the payload names) is there."""
    job.progress(1, 2)
    gate = Path(job.payload.decode())
    deadline = time.monotonic() + 20
    while not gate.exists():
        if time.monotonic() > deadline:
            raise TimeoutError("the gate did not open")
        threading.Event().wait(0.01)
    return "through"
