"""Which protocol a URL means, and what each can say. A protocol's module is imported when it is first needed."""

import importlib
from typing import Any, Final

from geartrain import address
from geartrain.address import Address
from geartrain.client.link import ClientLink, WorkerLink
from geartrain.client.order import Capabilities
from geartrain.errors import AddressError

_LINKS: Final = {
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


def client_class(place: Address) -> type[ClientLink]:
    """The link that a client of this address has."""
    found: type[ClientLink] = _module(place.scheme).Client
    return found


def worker_class(place: Address) -> type[WorkerLink]:
    """The link that a worker of this address has."""
    found: type[WorkerLink] = _module(place.scheme).Worker
    return found


def capabilities(url: str) -> Capabilities:
    """What the protocol of a URL can say."""
    return client_class(address.parse(url)).capabilities


def protocol(place: Address) -> str:
    """The protocol's name, without what carries it: `memodb` for `memodb+ws`."""
    return _LINKS[place.scheme]


def who_can(capability: str) -> list[str]:
    """The protocols that can say something, as a client or as a worker, of those that are installed here."""
    return [name for name in dict.fromkeys(_LINKS.values()) if _can(name, capability)]


def _can(name: str, capability: str) -> bool:
    try:
        module = importlib.import_module(f"geartrain.client.links.{name}")
    except ImportError:
        return False
    return any(getattr(link.capabilities, capability) for link in (module.Client, module.Worker))


def _module(scheme: str) -> Any:
    if scheme not in _LINKS:
        raise AddressError(f"the library has no protocol for {scheme}://; it has {', '.join(_LINKS)}")
    return importlib.import_module(f"geartrain.client.links.{_LINKS[scheme]}")
