"""Connections and descriptors that are exhausted are logged once in a while, not for each connection."""

import errno
import os
from typing import Never

import pytest

from geartrain.doors import connection_limit
from geartrain.doors.connection_limit import LOG_SECONDS, ConnectionLimit


class Scene:
    now = 100.0
    connections = 0

    def __init__(self) -> None:
        self.limit = ConnectionLimit(2, lambda: self.connections, lambda: self.now)


def fail(path: str, flags: int) -> Never:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def test_refused_connections_are_counted_between_two_lines(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    assert scene.limit.admits("gearman", "peer")
    scene.connections = 2
    assert [scene.limit.admits("gearman", "peer") for _ in range(5)] == [False] * 5
    scene.now += LOG_SECONDS
    assert not scene.limit.admits("gearman", "peer")
    assert [record.fields["refused"] for record in caplog.records] == [1, 5]  # type: ignore[attr-defined]


def test_descriptors(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    scene.limit.check_descriptors()
    assert not caplog.records
    monkeypatch.setattr(connection_limit.os, "open", fail)
    for _ in range(3):
        scene.limit.check_descriptors()
    assert [record.message for record in caplog.records] == ["out of file descriptors, connections refused"]
    scene.now += LOG_SECONDS
    scene.limit.check_descriptors()
    assert len(caplog.records) == 2


def test_descriptors_are_checked_when_a_connection_is_refused(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene()
    scene.connections = 2
    monkeypatch.setattr(connection_limit.os, "open", fail)
    scene.limit.admits("gearman", "peer")
    assert [record.message.partition(",")[0] for record in caplog.records] == [
        "connection limit reached",
        "out of file descriptors",
    ]
