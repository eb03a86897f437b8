"""The protocol of a URL, and what each protocol supports. A protocol's module is imported when it is first needed."""

import importlib
from typing import Any, Final

from geartrain import address
from geartrain.address import Address
from geartrain.client.order import Capabilities
from geartrain.client.protocols.base import ClientProtocol, WorkerProtocol
from geartrain.errors import AddressError

_PROTOCOLS: Final = {
    "gearman": "gearman",
    "danga": "danga",
    "periodic": "periodic",
    "periodic+unix": "periodic",
    "memodb+tcp": "memodb",
    "memodb+ipc": "memodb",
    "memodb+ws": "memodb",
    "gearmonkey": "gearmonkey",
    "http": "http",
}


def client_class(server: Address) -> type[ClientProtocol]:
    """The protocol of a client of this address."""
    protocol: type[ClientProtocol] = _module(server.scheme).Client
    return protocol


def worker_class(server: Address) -> type[WorkerProtocol]:
    """The protocol of a worker of this address."""
    protocol: type[WorkerProtocol] = _module(server.scheme).Worker
    return protocol


def capabilities(url: str) -> Capabilities:
    """What the protocol of a URL supports."""
    return client_class(address.parse(url)).capabilities


def protocol(server: Address) -> str:
    """The protocol's name without its transport: `memodb` for `memodb+ws`."""
    return _PROTOCOLS[server.scheme]


def protocols_with(capability: str) -> list[str]:
    """The protocols that support something as a client or as a worker, of those whose libraries are installed."""
    return [name for name in dict.fromkeys(_PROTOCOLS.values()) if _can(name, capability)]


def _can(name: str, capability: str) -> bool:
    try:
        module = importlib.import_module(f"geartrain.client.protocols.{name}")
    except ImportError:
        return False
    return any(getattr(kind.capabilities, capability) for kind in (module.Client, module.Worker))


def _module(scheme: str) -> Any:
    if scheme not in _PROTOCOLS:
        raise AddressError(f"the library does not speak {scheme}://; it speaks {', '.join(_PROTOCOLS)}")
    return importlib.import_module(f"geartrain.client.protocols.{_PROTOCOLS[scheme]}")
