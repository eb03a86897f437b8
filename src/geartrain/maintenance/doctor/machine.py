"""Checks of what the server stands on: ports, limits of the system, versions."""

import contextlib
import importlib.metadata
import platform
import resource
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import apsw

import geartrain
from geartrain import eventloop
from geartrain.address import PATH_SCHEMES, Address
from geartrain.maintenance.doctor.finding import Finding, Findings
from geartrain.server import listeners
from geartrain.server.config.settings import Settings
from geartrain.store import holder

_PATIENCE: Final = 1.0
_FEW_FILES: Final = 4096
_EVERY_INTERFACE: Final = (listeners.EVERY_INTERFACE, "0.0.0.0", "::")


def ports(settings: Settings, path: Path | None, found: Findings) -> Iterator[Finding]:
    """Whether the doors' addresses are free, or who answers there. Nothing is bound: a server may be starting."""
    server = holder.find(path) if path is not None else None
    wanted = settings.listen or tuple(listeners.default_addresses())
    answers = [_who_answers(address, talk=not settings.tls_certificate) for address in wanted]
    ours = (None, 0, server.pid) if server is not None else (None,)
    # A usual port that is taken is left out by the server, unless that leaves nothing.
    optional = not settings.listen and any(answer in ours for answer in answers)
    for address, answer in zip(wanted, answers, strict=True):
        if answer is None:
            yield found.ok(f"{address} is free")
        elif answer in ours:
            yield found.ok(f"{address}: the server that has the store open answers")
        else:
            who = answer if isinstance(answer, str) else f"it is taken{f' by process {answer}' if answer else ''}"
            advice = "stop the other server, or listen somewhere else with --listen"
            level = found.warning if optional else found.problem
            yield level(f"{address}: {who}", advice)


def open_files(found: Findings) -> Finding:
    """How many connections the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        return found.ok("as many open files as one likes")
    if hard < _FEW_FILES:
        return found.warning(
            f"at most {hard:,} open files, and every connection is one",
            "raise the limit (`ulimit -Hn`, or LimitNOFILE= in the service file) if there are many peers",
        )
    return found.ok(f"at most {hard:,} open files (now {soft:,}; the server takes all it may)")


def versions(found: Findings) -> Finding:
    """What this runs on."""
    best = eventloop.best().name
    parts = (
        f"geartrain {geartrain.__version__}",
        f"Python {platform.python_version()}",
        f"SQLite {apsw.sqlite_lib_version()} (apsw {apsw.apsw_version()})",
        f"{best} {_version_of(best)}".strip(),
    )
    text = ", ".join(parts)
    if best != "uvloop":
        return found.warning(f"{text}: uvloop is not installed", "`pip install uvloop` makes the server faster")
    return found.ok(text)


def _version_of(package: str) -> str:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(package)
    return ""


def _who_answers(address: Address, talk: bool) -> int | str | None:
    """The process that listens there; 0: one that does not say, None: nobody, text: why it cannot be known."""
    try:
        connection = _connect(address)
    except (ConnectionRefusedError, FileNotFoundError):
        return None
    except OSError as error:
        return error.strerror or str(error)
    with connection:
        return _process_id(connection) if talk and address.scheme == "gearman" else 0


def _connect(address: Address) -> socket.socket:
    if address.scheme in PATH_SCHEMES:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(_PATIENCE)
        try:
            connection.connect(address.path)
        except OSError:
            connection.close()
            raise
        return connection
    host = "127.0.0.1" if address.host in _EVERY_INTERFACE else address.host
    return socket.create_connection((host, address.port), timeout=_PATIENCE)


def _process_id(connection: socket.socket) -> int:
    """What a Gearman server, ours or another, says to `getpid`."""
    try:
        connection.sendall(b"getpid\n")
        words = connection.recv(64).split()
    except OSError:
        return 0
    return int(words[1]) if len(words) == 2 and words[0] == b"OK" and words[1].isdigit() else 0
