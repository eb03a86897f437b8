"""The Gearman libraries of the world as tables: how to start each, and what each can say and hear.

Every one of them is driven by a small script of ours (peers/, perl/, php/) that follows peers/contract.py.
"""

import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent


class Library(NamedTuple):
    """One library, as a client and as a worker."""

    name: str  # as in tools/peers.py
    client: tuple[str, ...]
    worker: tuple[str, ...]
    offers: frozenset[str]  # the functions of the worker script
    hears: tuple[str, ...]  # what the client script tells about a job that reports, in its order
    hears_exception: bool  # the client can ask the server to forward exceptions
    asks_status: bool  # the client can ask about a handle
    binary: bool  # payloads may be any bytes; otherwise ASCII: these two count characters, or decode results

    def __str__(self) -> str:
        return self.name


def _python(script: str) -> tuple[str, ...]:
    return (sys.executable, str(HERE / "peers" / script))


EVERYTHING = ("status 1/4", "data part", "warning careful", "status 4/4", "complete whole")
REVERSE = "import sys; data = sys.stdin.buffer.read(); sys.stdout.buffer.write(data[::-1])"

GEARMAN = Library(
    "gearman",
    client=_python("gearman_client.py"),
    worker=("gearman", "-w"),
    offers=frozenset({"reverse"}),
    hears=(),
    hears_exception=False,
    asks_status=False,
    binary=True,
)
PERL = Library(
    "perl",
    client=("perl", str(HERE / "perl" / "client.pl")),
    worker=("perl", str(HERE / "perl" / "worker.pl")),
    offers=frozenset({"reverse", "report", "fail", "die", "gate"}),
    hears=EVERYTHING,
    hears_exception=True,
    asks_status=True,
    binary=True,
)
PHP = Library(
    "php",
    client=("php", str(HERE / "php" / "client.php")),
    worker=("php", str(HERE / "php" / "worker.php")),
    offers=frozenset({"reverse", "empty", "unique", "report", "fail", "die", "gate"}),
    hears=EVERYTHING,
    hears_exception=True,
    asks_status=True,
    binary=True,
)
GEAR = Library(
    "gear",
    client=_python("gear_client.py"),
    worker=_python("gear_worker.py"),
    offers=frozenset({"reverse", "empty", "unique", "report", "fail", "die", "gate"}),
    hears=EVERYTHING,
    hears_exception=True,
    asks_status=True,
    binary=True,
)
PYTHON3_GEARMAN = Library(
    "python3-gearman",
    client=_python("python3_gearman_client.py"),
    worker=_python("python3_gearman_worker.py"),
    offers=frozenset({"reverse", "empty", "unique", "report", "die", "gate"}),
    hears=("status 4/4", "data part", "warning careful", "complete whole"),
    hears_exception=False,
    asks_status=True,
    binary=False,
)
AIOGEAR = Library(
    "aiogear",
    client=_python("aiogear_client.py"),
    worker=_python("aiogear_worker.py"),
    offers=frozenset({"reverse", "empty", "die", "gate"}),
    hears=("complete whole",),
    hears_exception=True,
    asks_status=True,
    binary=False,
)
GEARTRAIN = Library(
    "geartrain",
    client=_python("geartrain_client.py"),
    worker=_python("geartrain_worker.py"),
    offers=frozenset({"reverse", "empty", "unique", "report", "fail", "die", "gate"}),
    hears=EVERYTHING,
    hears_exception=True,
    asks_status=True,
    binary=True,
)

LIBRARIES = (GEARMAN, PERL, PHP, GEAR, PYTHON3_GEARMAN, AIOGEAR, GEARTRAIN)

# Pairs of client and worker. One of them cannot meet on any server: aiogear's clients make up unique keys of
# random bytes, and python3-gearman's workers read only text.
PAIRS = tuple(
    (client, worker) for worker in LIBRARIES for client in LIBRARIES if (client, worker) != (AIOGEAR, PYTHON3_GEARMAN)
)


def worker_command(library: Library, host: str, port: int, prefix: str) -> list[str]:
    if library is GEARMAN:
        # One command for all its functions; without a script of ours it offers one.
        options = ["-h", host, "-p", str(port), "-f", f"{prefix}-reverse"]
        return [*library.worker, *options, "--", sys.executable, "-c", REVERSE]
    return [*library.worker, host, str(port), prefix]
