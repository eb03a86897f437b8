"""SIGTERM and SIGINT end a worker of the library after its job."""

import contextlib
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from geartrain.client import gearmonkey
from tests.acceptance.gearmonkey.conftest import Place
from tests.support import process

ROOT = Path(__file__).parents[3]
SIGNALS = [signal.SIGTERM, signal.SIGINT]


@contextlib.contextmanager
def running(place: Place, function: str, home: Path) -> Iterator[process.Process]:
    script = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.acceptance.gearmonkey import signalled_worker"
    worker = process.Process([sys.executable, "-c", script, place.url, function], home, stdin=True)
    try:
        worker.wait_for_line("ready")
        yield worker
    finally:
        worker.kill()


def catches(pid: int, number: signal.Signals) -> bool:
    """Whether a process has a handler for a signal, as the kernel says."""
    status = Path(f"/proc/{pid}/status").read_text()
    (mask,) = (line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(mask, 16) >> (number - 1) & 1)


@pytest.mark.parametrize("number", SIGNALS)
def test_job_at_hand_is_finished(place: Place, function: str, tmp_path: Path, raw: Any, number: signal.Signals) -> None:
    with gearmonkey.Client(place.url) as client, running(place, function, tmp_path) as worker:
        at_hand = client.run(function, b"first")
        worker.wait_for_line("working on first")
        waiting = client.run(function, b"second")
        assert raw.get(f"count:{function}") == b"1"
        worker.process.send_signal(number)
        worker.write(b"\n")
        assert worker.wait() == 0, worker.account()
        assert worker.lines[-1] == "run has returned"
        assert client.get(function, at_hand)[:3] == ("success", b"first", b"FIRST")
        assert client.get(function, waiting).status == "idle", "it took another job"
        assert raw.get(f"count:{function}") in (b"0", None)


def test_idle_worker(place: Place, function: str, tmp_path: Path, raw: Any) -> None:
    with running(place, function, tmp_path) as worker:
        while not catches(worker.pid, signal.SIGTERM):  # until it runs
            assert worker.process.poll() is None, worker.account()
        assert raw.get(f"count:{function}") == b"1"
        worker.process.send_signal(signal.SIGTERM)
        assert worker.wait() == 0, worker.account()
    assert raw.get(f"count:{function}") in (b"0", None)


def test_second_signal_ends_it_at_once(place: Place, function: str, tmp_path: Path) -> None:
    with gearmonkey.Client(place.url) as client, running(place, function, tmp_path) as worker:
        client.run(function, b"first")
        worker.wait_for_line("working on first")
        while worker.process.poll() is None:  # two signals of a kind that arrive together are one
            worker.process.send_signal(signal.SIGTERM)
        assert worker.wait() == -signal.SIGTERM
