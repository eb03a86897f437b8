"""Notifications to systemd, over a real socket."""

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from geartrain.server.process.systemd import Notifier


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, socket.socket]]:
    """systemd's end, and the name it would put into NOTIFY_SOCKET."""
    name = str(tmp_path / "notify") if request.param == "path" else f"@geartrain-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.settimeout(10)
        listener.bind("\0" + name[1:] if name.startswith("@") else name)
        yield name, listener


def test_messages(manager: tuple[str, socket.socket]) -> None:
    name, listener = manager
    notifier = Notifier({"NOTIFY_SOCKET": name})

    notifier.ready("serving gearman://127.0.0.1:4730")
    assert listener.recv(4096).decode().splitlines() == [
        "READY=1",
        "STATUS=serving gearman://127.0.0.1:4730",
        f"MAINPID={os.getpid()}",
    ]

    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    notifier.reloading()
    reloading, when = listener.recv(4096).decode().splitlines()
    assert reloading == "RELOADING=1"
    assert before <= int(when.removeprefix("MONOTONIC_USEC=")) <= time.clock_gettime_ns(time.CLOCK_MONOTONIC)

    notifier.stopping("stopping")
    assert listener.recv(4096) == b"STOPPING=1\nSTATUS=stopping"


def test_without_a_socket_nothing_is_sent(caplog: pytest.LogCaptureFixture) -> None:
    Notifier({}).ready("serving")
    assert not caplog.records


def test_missing_socket_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Notifier({"NOTIFY_SOCKET": str(tmp_path / "absent")}).ready("serving")
    [record] = caplog.records
    assert record.getMessage() == "cannot notify systemd"
