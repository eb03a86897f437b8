"""All checks in order. None of them changes anything, or disturbs a server."""

import functools
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from geartrain.errors import GeartrainError, StoreError
from geartrain.maintenance.doctor import contents, disk, machine
from geartrain.maintenance.doctor.finding import Check, Finding, Level
from geartrain.server import options
from geartrain.server.config import load
from geartrain.server.config.settings import Settings
from geartrain.store import url
from geartrain.store.shared import as_shared
from geartrain.store.sqlite import SqliteStore


def examine(flags: Mapping[str, Any], thorough: bool) -> Iterator[Finding]:
    """Run all checks; `flags` are those of `geartrain serve`."""
    try:
        settings = load.load(flags)
        store = url.create_store(settings.store, options.result_limits(settings))
    except GeartrainError as error:
        advice = "correct it and run `geartrain doctor` again: store and ports were not checked"
        yield Check("settings").problem(str(error), advice)
    else:
        path = store.path if isinstance(store, SqliteStore) else None
        yield _settings(flags, settings, Check("settings"))
        if as_shared(store) is not None:
            yield from _shared_store(settings)
        else:
            yield from _store(path, thorough)
            yield from machine.ports(settings, machine.server_of(path), Check("ports"))
    yield machine.open_files(Check("open files"))
    yield machine.versions(Check("versions"))
    yield machine.core(Check("core"))


def _settings(flags: Mapping[str, Any], settings: Settings, check: Check) -> Finding:
    named = flags.get("config") or os.environ.get(load.CONFIG_VARIABLE)
    defaults = (str(path) for path in load.default_files(os.environ) if path.is_file())
    file = named or next(defaults, "")
    origin = f"read from {file}" if file else "no settings file"
    return check.ok(f"{origin}; the store is {url.shown(settings.store or url.default_url(os.environ))}")


def _shared_store(settings: Settings) -> Iterator[Finding]:
    from geartrain.maintenance.doctor import postgresql  # which needs psycopg

    yield from postgresql.examine(settings.store)
    member = options.member(settings)
    is_running = postgresql.is_running(settings.store, member.name, member.machine)
    yield from machine.ports(settings, machine.ANY_PROCESS if is_running else None, Check("ports"))


def _store(path: Path | None, thorough: bool) -> Iterator[Finding]:
    if path is None:
        yield Check("store").ok("in memory: all jobs are lost when the server stops")
        return
    for name, function in _DISK_CHECKS:
        yield _run(function, path, Check(name))
    if not os.path.exists(path) or not os.path.getsize(path):
        yield Check("file").ok(f"{path} does not exist yet; the server creates it")
        return
    integrity = functools.partial(contents.integrity, thorough=thorough)
    for name, function in (("layout", contents.layout), ("integrity", integrity), *contents.CHECKS):
        finding = _run(function, path, Check(name))
        yield finding
        if finding.level is Level.PROBLEM:  # later checks of this file would be unreliable, or repeat it
            return


_DISK_CHECKS: Final = (
    ("folder", disk.folder),
    ("file system", disk.file_system),
    ("space", disk.space),
    ("disk speed", disk.speed),
    ("lock", disk.lock),
    ("damaged files", contents.damaged_files),
)


def _run(function: Callable[[Path, Check], Finding], path: Path, check: Check) -> Finding:
    """Run one check; if it cannot read what it needs, that is its finding."""
    try:
        return function(path, check)
    except StoreError as error:
        return contents.unreadable(error, check)
    except OSError as error:
        return check.problem(f"{error.filename or path}: {error.strerror}", "check the permissions of this user")
