"""The pid file exists while the server runs."""

import os
from pathlib import Path

import pytest

from geartrain.errors import StartError
from geartrain.server.process import pid_file


def test_written_and_removed(tmp_path: Path) -> None:
    path = tmp_path / "server.pid"
    path.write_text("999999999\n")  # left behind by a crash
    with pid_file.written(str(path)):
        assert path.read_text() == f"{os.getpid()}\n"
    assert not path.exists()


def test_relative_path_survives_a_change_of_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pid_file.written("server.pid"):
        monkeypatch.chdir("/")
    assert not (tmp_path / "server.pid").exists()


def test_another_servers_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "server.pid"
    with pid_file.written(str(path)):
        path.write_text("1\n")
    assert path.read_text() == "1\n"


def test_empty_path_writes_no_file() -> None:
    with pid_file.written(""):
        pass


def test_unwritable_file_is_a_start_error(tmp_path: Path) -> None:
    writing = pid_file.written(str(tmp_path / "absent" / "server.pid"))
    with pytest.raises(StartError, match=r"cannot write the pid file .*/absent/server\.pid: No such file"):
        writing.__enter__()


def test_missing_file_at_the_end_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "server.pid"
    with pid_file.written(str(path)):
        path.unlink()
    [record] = caplog.records
    assert record.getMessage() == "cannot remove pid file"


def test_symbolic_link_is_refused(tmp_path: Path) -> None:
    target, path = tmp_path / "target", tmp_path / "server.pid"
    target.write_text("content")
    path.symlink_to(target)
    with pytest.raises(StartError, match=r"cannot write the pid file .*/server\.pid: it is a symbolic link"):
        pid_file.written(str(path)).__enter__()
    assert target.read_text() == "content"


def test_hard_link_is_refused(tmp_path: Path) -> None:
    target, path = tmp_path / "target", tmp_path / "server.pid"
    target.write_text("content")
    path.hardlink_to(target)
    with pytest.raises(StartError, match="it is not a regular file with one name"):
        pid_file.written(str(path)).__enter__()
    assert target.read_text() == "content"


def test_fifo_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "server.pid"
    os.mkfifo(path)
    with pytest.raises(StartError, match="cannot write the pid file"):
        pid_file.written(str(path)).__enter__()


def test_link_that_took_its_place_is_not_followed(tmp_path: Path) -> None:
    target, path = tmp_path / "target", tmp_path / "server.pid"
    with pid_file.written(str(path)):
        path.rename(target)
        path.symlink_to(target)
    assert path.is_symlink()
