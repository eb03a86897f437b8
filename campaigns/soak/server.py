"""The server of a soak: one store and one set of ports for many lives, a disk that fills up, a clock that steps.

The disk is full when the process may write no file beyond its first byte (RLIMIT_FSIZE), which needs no rights that a
test has not. The clock steps by libfaketime, which is loaded into the server, so that the server needs no way to be
told another time. Without libfaketime the clock does not step, and the report says so.
"""

import random
import resource
import signal
import subprocess
import threading
from pathlib import Path

from tests.support import process, serving

SCHEMES = ("gearman", "danga", "periodic", "memodb+tcp", "gearmonkey", "http")
MAX_ATTEMPTS = 3
PATIENCE = 120.0  # seconds for a start or a stop
_MOST_READERS = 8  # of the database file at the same time
_LIBRARIES = "*/faketime/libfaketimeMT.so.1"
_FAULTS = ("packet handling failed", "Traceback (most recent call last)")
_SETTINGS = {
    "--max-attempts": str(MAX_ATTEMPTS),
    "--keep-records": "100000000",
    "--keep-records-for": "365d",
    "--http-worker-lease": "5s",
    "--memodb-heartbeat": "2s",
    "--memodb-worker-timeout": "5s",
    "--gearmonkey-grace": "5s",
}


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except FileNotFoundError:  # closed meanwhile
        return ""


class SoakServer:
    """One server after the other, on the same ports and the same file."""

    def __init__(self, home: Path, chance: random.Random) -> None:
        self.home = home
        self.store = f"sqlite://{home}/jobs.db"
        ports = [port for port in chance.sample(serving.PORTS, 200) if serving.is_free(port)]
        self.urls = {scheme: f"{scheme}://{serving.HOST}:{port}" for scheme, port in zip(SCHEMES, ports, strict=False)}
        self.lives = 0
        self._log = home / "server.log"
        self._clock = home / "clock"
        self._faketime = next(iter(sorted(Path("/usr/lib").glob(_LIBRARIES))), None)
        self._process: subprocess.Popen[bytes] | None = None
        self._readers: list[threading.Thread] = []
        self.set_clock(0)

    @property
    def can_step_clock(self) -> bool:
        return self._faketime is not None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def port(self, scheme: str) -> int:
        return int(self.urls[scheme].rpartition(":")[2])

    def start(self) -> None:
        """Start it, and wait until all its doors are open."""
        self.lives += 1
        listens = [word for url in self.urls.values() for word in ("--listen", url)]
        settings = [word for setting in _SETTINGS.items() for word in setting]
        self._process = subprocess.Popen(
            [str(serving.installed_command()), "serve", "--store", self.store, *listens, *settings],
            cwd=self.home,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        opened = threading.Semaphore(0)
        self._readers = [
            threading.Thread(target=self._read_stdout, args=(self._process, opened), daemon=True),
            threading.Thread(target=self._read_stderr, args=(self._process,), daemon=True),
        ]
        for reader in self._readers:
            reader.start()
        for _ in self.urls:
            if not opened.acquire(timeout=PATIENCE):
                raise AssertionError(f"the server did not start\n{self.log[-4000:]}")

    def kill(self) -> None:
        """kill -9."""
        assert self._process is not None
        self._process.kill()
        self._wait()

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._wait()

    def _wait(self) -> int:
        assert self._process is not None
        try:
            return self._process.wait(PATIENCE)
        finally:
            for reader in self._readers:
                reader.join(PATIENCE)
            for pipe in (self._process.stdout, self._process.stderr):
                assert pipe is not None
                pipe.close()

    # Faults

    def fill_disk(self) -> None:
        """From now on no write to a file succeeds."""
        _, hard = resource.prlimit(self.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (1, hard))

    def empty_disk(self) -> None:
        """Undo `fill_disk`."""
        _, hard = resource.prlimit(self.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (hard, hard))

    def set_clock(self, offset: int) -> None:
        """Set the server's wall clock to so many seconds from the real time; it follows within a second."""
        other = self._clock.with_suffix(".new")
        other.write_text(f"{offset:+d}\n")
        other.replace(self._clock)  # never half-written

    def _environment(self) -> dict[str, str]:
        environment = process.clean_environment(self.home)
        if self._faketime is not None:
            environment |= {
                "LD_PRELOAD": str(self._faketime),
                "FAKETIME_TIMESTAMP_FILE": str(self._clock),
                "FAKETIME_CACHE_DURATION": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            }
        return environment

    # What can be seen of it

    @property
    def memory(self) -> int:
        """Resident, in KiB."""
        return int(Path(f"/proc/{self.pid}/status").read_text().partition("VmRSS:")[2].split()[0])

    @property
    def descriptors(self) -> int:
        """Open ones. Those of the database file count once.

        SQLite cannot close a file while another connection of the process has locked it. It keeps such descriptors and
        uses them again for the next reader, so there are as many as there were readers at the same time.
        """
        links = [_target(link) for link in Path(f"/proc/{self.pid}/fd").iterdir()]
        database = str(self.home / "jobs.db")
        readers = links.count(database)
        return len(links) - max(0, min(readers, _MOST_READERS) - 1)

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def logged_faults(self) -> list[str]:
        """Lines of its log that no server should ever write."""
        return [line for line in self.log.splitlines() if any(fault in line for fault in _FAULTS)]

    def _read_stdout(self, child: "subprocess.Popen[bytes]", opened: threading.Semaphore) -> None:
        assert child.stdout is not None
        for line in child.stdout:
            if line.startswith(serving.LISTENING.encode()):
                opened.release()

    def _read_stderr(self, child: "subprocess.Popen[bytes]") -> None:
        """Through a pipe: a log file would be full together with the disk."""
        assert child.stderr is not None
        with self._log.open("ab") as log:
            for line in child.stderr:
                log.write(line)
                log.flush()
