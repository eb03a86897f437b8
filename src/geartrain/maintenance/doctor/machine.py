"""Checks of the machine: ports, limits, versions."""

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
from geartrain import compiled, eventloop
from geartrain.address import PATH_SCHEMES, Address
from geartrain.maintenance.doctor.finding import Check, Finding
from geartrain.server import listeners
from geartrain.server.config.settings import Settings
from geartrain.store.lock import find_holder

ANY_PROCESS: Final = -1  # as the process of a server
_CONNECT_SECONDS: Final = 1.0
_FEW_FILES: Final = 4096
_EVERY_INTERFACE: Final = (listeners.EVERY_INTERFACE, "0.0.0.0", "::")


def server_of(path: Path | None) -> int | None:
    """The process that has the file of a store open."""
    holder = find_holder(path) if path is not None else None
    return holder.pid if holder is not None else None


def ports(settings: Settings, server: int | None, check: Check) -> Iterator[Finding]:
    """Whether the server's addresses are free, or which process listens there.

    `server` is the process of the server, ANY_PROCESS if it runs and its process is not known, or None. It connects
    instead of binding: a bound port could keep a server from starting.
    """
    addresses = settings.listen or tuple(listeners.default_addresses(tls=bool(settings.tls_certificate)))
    answers = [_listening_process(address) for address in addresses]

    def is_ours(answer: int | str | None) -> bool:
        return server is not None and (answer in (0, server) or (server == ANY_PROCESS and isinstance(answer, int)))

    # The server skips default ports that are in use, unless all of them are.
    optional = not settings.listen and any(answer is None or is_ours(answer) for answer in answers)
    for address, answer in zip(addresses, answers, strict=True):
        if answer is None:
            yield check.ok(f"{address} is free")
        elif is_ours(answer):
            yield check.ok(f"{address}: in use by the server that has the store open")
        else:
            text = answer if isinstance(answer, str) else f"in use{f' by process {answer}' if answer else ''}"
            advice = "stop the other process, or choose another address with --listen"
            level = check.warning if optional else check.problem
            yield level(f"{address}: {text}", advice)


def open_files(check: Check) -> Finding:
    """How many files, and so connections, the process may open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        return check.ok("no limit")
    if hard < _FEW_FILES:
        return check.warning(
            f"at most {hard:,}; every connection needs one",
            "raise the hard limit (`ulimit -Hn`, or LimitNOFILE= in the service file) if you expect many connections",
        )
    return check.ok(f"at most {hard:,} (now {soft:,}; the server raises its limit to the maximum)")


def versions(check: Check) -> Finding:
    """The versions of Geartrain and what it runs on."""
    best = eventloop.best().name
    parts = (
        f"geartrain {geartrain.__version__}",
        f"Python {platform.python_version()}",
        f"SQLite {apsw.sqlite_lib_version()} (apsw {apsw.apsw_version()})",
        f"{best} {_version_of(best)}".strip(),
    )
    text = ", ".join(parts)
    if best != "uvloop":
        return check.warning(f"{text}; uvloop is not installed", "`pip install uvloop`: the server is faster with it")
    return check.ok(text)


def core(check: Check) -> Finding:
    """Whether the core is compiled."""
    if compiled.is_fallback():
        return check.warning("not compiled: the server is several times slower than it could be", compiled.ADVICE)
    requested = f"; {compiled.VARIABLE} is set" if compiled.PURE_WAS_REQUESTED else ""
    return check.ok(f"{compiled.form()}{requested}")


def _version_of(package: str) -> str:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(package)
    return ""


def _listening_process(address: Address) -> int | str | None:
    """The id of the process that listens there; 0: an unknown process, None: none, text: why it is unknown."""
    try:
        connection = _connect(address)
    except (ConnectionRefusedError, FileNotFoundError):
        return None
    except OSError as error:
        return error.strerror or str(error)
    with connection:
        return _process_id(connection) if address.scheme == "gearman" and not address.tls else 0


def _connect(address: Address) -> socket.socket:
    if address.scheme in PATH_SCHEMES:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(_CONNECT_SECONDS)
        try:
            connection.connect(address.path)
        except OSError:
            connection.close()
            raise
        return connection
    host = "127.0.0.1" if address.host in _EVERY_INTERFACE else address.host
    return socket.create_connection((host, address.port), timeout=_CONNECT_SECONDS)


def _process_id(connection: socket.socket) -> int:
    """Ask a Gearman server, ours or another, for its process id; 0 without an answer."""
    try:
        connection.sendall(b"getpid\n")
        words = connection.recv(64).split()
    except OSError:
        return 0
    return int(words[1]) if len(words) == 2 and words[0] == b"OK" and words[1].isdigit() else 0
