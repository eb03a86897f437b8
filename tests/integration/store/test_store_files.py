"""Files that somebody removes, replaces or links while a store has them open."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from geartrain.errors import StoreError
from geartrain.store.contract import Quota, Retention
from geartrain.store.sqlite import SqliteStore
from tests.contract.stores.factories import batch, ids, job
from tests.support.store_files import log
from tests.support.store_fixtures import Opened

QUOTA = Quota(1000.0, 1000)
RENEWED = "write-ahead log was removed or replaced; a new one was made"
OPEN_STORE = """
import sys
from geartrain.errors import StoreError
from geartrain.store.sqlite import SqliteStore
try:
    SqliteStore(sys.argv[1]).open()
except StoreError as error:
    sys.exit(str(error))
"""


def index(path: Path) -> Path:
    return path.with_name(path.name + "-shm")


def remove_log(path: Path) -> None:
    log(path).unlink()


def remove_index(path: Path) -> None:
    index(path).unlink()


def remove_both(path: Path) -> None:
    remove_log(path)
    remove_index(path)


def replace_log(path: Path) -> None:
    _replace(log(path))


def replace_index(path: Path) -> None:
    _replace(index(path))


def empty_log(path: Path) -> None:
    log(path).rename(log(path).with_suffix(".away"))
    log(path).touch()


def _replace(file: Path) -> None:
    copy = file.with_name("copy")
    copy.write_bytes(file.read_bytes())
    copy.rename(file)


DEEDS = (remove_log, remove_index, remove_both, replace_log, replace_index, empty_log)


def killed(path: Path, folder: Path) -> SqliteStore:
    """A store on copies of the files, as a server that was killed now would leave them."""
    folder.mkdir()
    for file in (path, log(path)):
        (folder / file.name).write_bytes(file.read_bytes())
    store = SqliteStore(folder / path.name)
    store.open()
    return store


@pytest.mark.parametrize("change", DEEDS)
def test_commit_after_the_log_was_removed_or_replaced_is_durable(
    path: Path, opened: Opened, tmp_path: Path, change: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    """With everything that was committed before, and everything that comes after."""
    store = opened()
    store.commit(batch([job(1)]))
    change(path)
    store.commit(batch([job(2)]))
    store.commit(batch([job(3)]))
    assert [entry.getMessage() for entry in caplog.records] == [RENEWED]
    after_kill = killed(path, tmp_path / "killed")
    assert ids(after_kill) == [1, 2, 3]
    after_kill.close(4)
    assert ids(opened()) == [1, 2, 3]


@pytest.mark.parametrize("change", DEEDS)
def test_idle_store_notices_when_it_prunes(
    path: Path, opened: Opened, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    store = opened()
    store.commit(batch([job(1)]))
    change(path)
    store.prune(0.0, Retention(QUOTA, QUOTA))
    after_kill = killed(path, tmp_path / "killed")
    assert ids(after_kill) == [1]
    after_kill.close(2)


@pytest.mark.parametrize("change", DEEDS)
def test_stop_after_the_log_was_removed_or_replaced(path: Path, opened: Opened, change: Callable[[Path], None]) -> None:
    store = opened()
    store.commit(batch([job(1)]))
    change(path)
    assert ids(opened()) == [1]


def test_replaced_log_is_kept_aside(path: Path, opened: Opened) -> None:
    store = opened()
    store.commit(batch([job(1)]))
    replace_log(path)
    content = log(path).read_bytes()
    store.commit(batch([job(2)]))
    (kept,) = path.parent.glob("jobs.db-wal.replaced-*")
    assert kept.read_bytes() == content


def test_log_that_cannot_be_copied_refuses_commits_until_it_can(path: Path, opened: Opened) -> None:
    """A reader of the old log keeps it from being copied as a whole."""
    store = opened()
    store.commit(batch([job(1)]))
    reader = subprocess.Popen([sys.executable, "-c", READER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"1\n"
        store.commit(batch([job(2)]))
        remove_log(path)
        with pytest.raises(StoreError, match=r"cannot write .*jobs\.db: "):
            store.commit(batch([job(3)]))
        reader.stdin.close()
        reader.wait()
    store.commit(batch([job(4)]))
    assert ids(opened()) == [1, 2, 4]


READER = """
import sys, apsw
connection = apsw.Connection(sys.argv[1], apsw.SQLITE_OPEN_READONLY)
connection.execute("BEGIN")
print(connection.execute("SELECT count(*) FROM jobs").get, flush=True)
sys.stdin.read()
"""


def another_process_opens(path: Path) -> str:
    """What a second process says that opens a store; empty if it succeeded."""
    ended = subprocess.run([sys.executable, "-c", OPEN_STORE, str(path)], capture_output=True, text=True, timeout=60)
    return ended.stderr.strip()


def symbolic_link(path: Path) -> Path:
    link = path.with_name("link.db")
    link.symlink_to(path)
    return link


def hard_link(path: Path) -> Path:
    link = path.with_name("link.db")
    link.hardlink_to(path)
    return link


def link_in_another_folder(path: Path) -> Path:
    folder = path.with_name("folder")
    folder.mkdir()
    link = folder / path.name
    link.hardlink_to(path)
    return link


def without_lock_file(path: Path) -> Path:
    path.with_name("jobs.db.lock").unlink()
    return path


@pytest.mark.parametrize("other_name", [symbolic_link, hard_link, link_in_another_folder, without_lock_file])
def test_file_has_one_server_by_whatever_name(path: Path, opened: Opened, other_name: Callable[[Path], Path]) -> None:
    store = opened()
    store.commit(batch([job(1)]))
    answer = another_process_opens(other_name(path))
    assert re.fullmatch(rf".*\.db is in use by process {os.getpid()}; stop it, or use another file", answer)
    store.commit(batch([job(2)]))
    assert ids(opened()) == [1, 2]


def test_lock_of_the_file_ends_with_the_store(path: Path, opened: Opened) -> None:
    opened().close(1)
    assert another_process_opens(hard_link(path)) == ""


def test_salvaged_file_is_locked(path: Path, opened: Opened) -> None:
    """It is another file than the one that was locked first."""
    path.write_bytes(b"damage" * 1000)
    path.with_name("jobs.db.lock").touch()
    store = opened()
    store.commit(batch([job(1)]))
    assert "is in use by process" in another_process_opens(hard_link(path))


def test_lock_leaves_readers_alone(path: Path, opened: Opened) -> None:
    opened().commit(batch([job(1)]))
    answer = subprocess.run([sys.executable, "-c", READER, str(path)], input=b"", capture_output=True, timeout=60)
    assert answer.stdout == b"1\n"


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_not_a_regular_file_is_refused(path: Path, make: Callable[[Path], None]) -> None:
    make(path)
    with pytest.raises(StoreError, match=r"jobs\.db is (a folder|not a regular file); name a file that only"):
        SqliteStore(path).open()
    assert [file.name for file in path.parent.iterdir()] == ["jobs.db"]


def test_lock_file_that_is_a_link_is_refused(path: Path) -> None:
    """The process id would overwrite the file that it points to."""
    target = path.with_name("precious")
    target.write_text("content")
    path.with_name("jobs.db.lock").symlink_to(target)
    with pytest.raises(StoreError, match=r"cannot write .*jobs\.db\.lock: "):
        SqliteStore(path).open()
    assert target.read_text() == "content"


def test_store_behind_a_link_keeps_its_files_beside_the_target(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "jobs.db").symlink_to(tmp_path / "data" / "jobs.db")
    store = SqliteStore(tmp_path / "jobs.db")
    store.open()
    store.commit(batch([job(1)]))
    assert {file.name for file in tmp_path.iterdir()} == {"data", "jobs.db"}
    remove_log(tmp_path / "data" / "jobs.db")
    store.commit(batch([job(2)]))
    assert ids(store) == [1, 2]
    store.close(3)
