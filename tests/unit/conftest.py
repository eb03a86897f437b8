"""The rule of this folder: a unit test starts no process and opens no socket, except a connected pair.

What needs a process, a port or a peer belongs to tests/integration, in the folder of the same name.
"""

import os
import socket
import subprocess
from typing import Any, NoReturn

import pytest

from geartrain import eventloop

_loop = eventloop.best().factory()
_loop.close()
FORBIDDEN: list[tuple[Any, str]] = [
    (subprocess.Popen, "__init__"),
    (os, "fork"),
    (os, "posix_spawn"),
    (os, "system"),
    (socket.socket, "bind"),
    (socket.socket, "connect"),
    (socket.socket, "connect_ex"),
    # uvloop opens sockets in C, without the methods above.
    (type(_loop), "create_server"),
    (type(_loop), "create_unix_server"),
    (type(_loop), "create_connection"),
    (type(_loop), "create_unix_connection"),
    (type(_loop), "create_datagram_endpoint"),
]


@pytest.fixture(autouse=True)
def only_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail a test that starts a process or opens a socket."""
    for owner, name in FORBIDDEN:
        monkeypatch.setattr(owner, name, _refusal(f"{owner.__name__}.{name}"))


def _refusal(name: str) -> Any:
    def refuse(*arguments: Any, **options: Any) -> NoReturn:
        pytest.fail(f"{name} was called in tests/unit; move this test to tests/integration")

    return refuse
