"""On what it was measured: the machine, ours, and everybody else's versions."""

import importlib.metadata
import json
import os
import platform
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench import contenders
from tests.support import process, redis_server, serving

VERSION_SECONDS = 20
SYNCS = 100
IN_MEMORY = frozenset({"tmpfs", "ramfs"})  # where an fsync means nothing


def _redis() -> str:
    try:
        return redis_server.program("redis-server")
    except AssertionError:
        return "redis-server"


DISTRIBUTIONS = frozenset({"pynng"})  # peers that are installed beside us
PROGRAMS = {
    "gearmand": ["gearmand", "--version"],
    "beanstalkd": ["beanstalkd", "-v"],
    "redis-server": [_redis(), "--version"],
}


def facts() -> dict[str, Any]:
    """What a reader has to know to judge a figure."""
    folder = Path(tempfile.gettempdir())
    return {
        "cores": len(contenders.CORES),
        "pinned": contenders.PINNED,
        "processor": _processor(),
        "memory_mib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_average": round(os.getloadavg()[0], 2),
        "filesystem": filesystem(folder),
        "fsync_us": round(_fsync(folder) * 1e6),
    }


def ours() -> dict[str, Any]:
    """What the servers of a run are: they see none of this process's own settings."""
    with tempfile.TemporaryDirectory() as folder:
        environment = process.clean_environment(Path(folder))
        said = _said([str(serving.installed_command()), "version", "--json"], environment)
    return dict(json.loads(said)) if said else {}


def versions(names: Iterable[str]) -> dict[str, str]:
    """Of peers that are installed here."""
    found = {name: _version(name) for name in names}
    return {name: version for name, version in found.items() if version}


def filesystem(path: Path) -> str:
    """The type of the file system that a folder is on."""
    best, kind = "", "unknown"
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount, found = line.split()[:3]
        inside = mount == "/" or path == Path(mount) or Path(mount) in path.parents
        if inside and len(mount) >= len(best):
            best, kind = mount, found
    return kind


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model", "Hardware"):
            return value.strip()
    return platform.machine()


def _fsync(folder: Path) -> float:
    """Seconds for 4 KiB to be on the disk that the stores of a run are on."""
    times = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(SYNCS):
            began = time.perf_counter()
            file.write(b"x" * 4096)
            file.flush()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - began)
    return statistics.median(times)


def _said(command: list[str], environment: dict[str, str] | None = None) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=VERSION_SECONDS, check=False, env=environment
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() or done.stderr.strip()


def _version(name: str) -> str:
    if name in PROGRAMS:
        number = re.search(r"[0-9]+(\.[0-9]+)+", _said(PROGRAMS[name]))
        return number[0] if number else ""
    environment = contenders.QUEUE_ENVIRONMENTS / name.lower() / "bin" / "python"
    if environment.exists():
        return _said([str(environment), "-c", f"import importlib.metadata as m; print(m.version({name.lower()!r}))"])
    if name not in DISTRIBUTIONS:
        return ""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
