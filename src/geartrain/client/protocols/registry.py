"""Which protocol a URL means, and what each can say. A protocol's module is imported when it is first needed."""

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


def client_class(place: Address) -> type[ClientProtocol]:
    """The link that a client of this address has."""
    found: type[ClientProtocol] = _module(place.scheme).Client
    return found


def worker_class(place: Address) -> type[WorkerProtocol]:
    """The link that a worker of this address has."""
    found: type[WorkerProtocol] = _module(place.scheme).Worker
    return found


def capabilities(url: str) -> Capabilities:
    """What the protocol of a URL can say."""
    return client_class(address.parse(url)).capabilities


def protocol(place: Address) -> str:
    """The protocol's name, without what carries it: `memodb` for `memodb+ws`."""
    return _PROTOCOLS[place.scheme]


def who_can(capability: str) -> list[str]:
    """The protocols that can say something, as a client or as a worker, of those that are installed here."""
    return [name for name in dict.fromkeys(_PROTOCOLS.values()) if _can(name, capability)]


def _can(name: str, capability: str) -> bool:
    try:
        module = importlib.import_module(f"geartrain.client.protocols.{name}")
    except ImportError:
        return False
    return any(getattr(kind.capabilities, capability) for kind in (module.Client, module.Worker))


def _module(scheme: str) -> Any:
    if scheme not in _PROTOCOLS:
        raise AddressError(f"the library has no protocol for {scheme}://; it has {', '.join(_PROTOCOLS)}")
    return importlib.import_module(f"geartrain.client.protocols.{_PROTOCOLS[scheme]}")
