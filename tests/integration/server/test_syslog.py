"""Log lines in the system log."""

import logging
import os
import socket
from pathlib import Path

import pytest

from geartrain.errors import StartError
from geartrain.server.process import log

SERVER = logging.getLogger("geartrain.server")


def test_syslog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "log")
    monkeypatch.setattr(log, "SYSLOG_SOCKET", path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as daemon:
        daemon.settimeout(10)
        daemon.bind(path)
        with log.opened("syslog", "info", "text"):
            SERVER.warning("wall clock changed", extra={"fields": {"seconds": 3}})
            message = daemon.recv(4096).decode()
    # Facility daemon (3 * 8) and severity warning (4).
    assert message == f"<28>geartrain[{os.getpid()}]: warning server  wall clock changed  seconds=3"


def test_missing_syslog_is_a_start_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "SYSLOG_SOCKET", str(tmp_path / "absent"))
    with pytest.raises(StartError, match=r"cannot open the system log at .*/absent"):
        log.Log("syslog", "info", "text")
