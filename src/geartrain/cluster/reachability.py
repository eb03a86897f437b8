"""Whether a server is certainly gone: nothing listens at its address any more.

That a machine refuses connections says more than silence does: it is there, and the server is not. So its jobs can be
taken over before its lease is over.
"""

import contextlib
import ipaddress
import os
import socket
from pathlib import Path
from typing import Final

from geartrain.store.shared import Node

_CONNECT_SECONDS: Final = 0.5


def this_machine() -> str:
    """Identifies the machine as long as it is up."""
    boot = ""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{os.uname().nodename}/{boot}"


def refuses(node: Node, machine: str) -> bool:
    """Whether the address of a node refuses connections. A loopback address means something on its own machine only."""
    host, _, port = node.link.rpartition("://")[2].rpartition(":")
    host = host.strip("[]")
    if not host or not port.isdigit() or (_is_loopback(host) and node.machine != machine):
        return False
    try:
        with socket.create_connection((host, int(port)), _CONNECT_SECONDS):
            return False
    except ConnectionRefusedError:
        return True
    except OSError:
        return False


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
