"""The workers of a soak: one process for each protocol, which is started again when it was killed."""

import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from campaigns.soak import job
from tests.support import process
from tests.support.gearman_peer import Kind, Peer

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0  # seconds for a stop


class WorkerProcess:
    """One worker, through all its lives."""

    def __init__(self, scheme: str, url: str, home: Path) -> None:
        self.scheme = scheme
        self._url = url
        self._home = home
        self._log = home / f"ran-{scheme}"
        self._errors = home / f"worker-{scheme}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._errors.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "campaigns.soak.worker", self._url, str(self._log)],
                cwd=ROOT,
                env=process.clean_environment(self._home),
                stdin=subprocess.DEVNULL,
                stderr=errors,
            )

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(PATIENCE)

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        assert self._process is not None
        self._process.terminate()
        try:
            return self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the worker for {self.scheme} did not stop on SIGTERM") from None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def ran(self) -> Counter[str]:
        """How often it ran each job."""
        return Counter(self._log.read_text().split()) if self._log.exists() else Counter()


class Workers:
    """All of them."""

    def __init__(self, urls: dict[str, str], home: Path) -> None:
        self.all = [WorkerProcess(scheme, url, home) for scheme, url in urls.items()]

    def start(self) -> None:
        for worker in self.all:
            worker.start()

    def pick(self, chance: float) -> WorkerProcess:
        return self.all[int(chance * len(self.all))]

    def ran(self) -> Counter[str]:
        """How often each job was run, by all of them."""
        return sum((worker.ran() for worker in self.all), Counter())

    def stop(self) -> None:
        """Stop all of them; an AssertionError for one that has ended before or does not end well."""
        for worker in self.all:
            assert worker.is_running, f"the worker for {worker.scheme} has ended by itself"
            worker.signal(signal.SIGCONT)
        codes = {worker.scheme: worker.stop() for worker in self.all}
        assert not any(codes.values()), f"exit codes of workers: {codes}"

    def kill(self) -> None:
        """After a failure: leave nothing running."""
        for worker in self.all:
            if worker.is_running:
                worker.kill()


def vanish_with_poison(port: int, chance: random.Random) -> None:
    """Take jobs that are poison, and disconnect with each of them, until there is none."""
    while True:
        with Peer(port) as peer:
            peer.send(Kind.CAN_DO, job.POISON.encode())
            if peer.take(chance.choice((Kind.GRAB_JOB, Kind.GRAB_JOB_UNIQ, Kind.GRAB_JOB_ALL))) is None:
                return
