"""The protocols that keep the contract of geartrain.client.protocols.base, and the servers that they are run on.

Every test of this folder runs once for each row of TARGETS: a protocol, a transport, a server. Most rows are doors of
one Geartrain server; GearMonkey is also run on a real Redis and Gearman on Debian's gearmand, where they are
installed. What the tests demand is what `ClientProtocol`, `WorkerProtocol`, `JobListener` and `JobRunner` promise, and
it depends on nothing but the protocol's `Capabilities` and the few facts of its row.

To have a new protocol run by this suite:

1.  Write `Client` and `Worker` in geartrain/client/protocols/<name>/, with `Capabilities` that are true: what they
    grant is tested to work, and what they deny is tested to be an UnsupportedError that sends nothing.
2.  Register its scheme in geartrain/client/protocols/registry.py.
3.  Add the URL of its door to `DOORS` below, or a function that starts another server to `SERVERS`.
4.  Add a row to `TARGETS`. A field of `Target` is a fact that the library does not need to know and a test does, such
    as whether a failure carries its worker's bytes. Prefer a capability to a new field wherever a program would ask
    for it, and a test of that protocol alone (tests/integration/client/protocols) to a field that only one row has.

Rules that hold at every moment are checked in every test, by the ends in tests/support/protocol_ends.py: a listener
hears `accepted` or `refused` or `gone` first and once, events only between `accepted` and one ending, and nothing
after `forget` or `close`; a worker never has more jobs than `concurrency`, and none after `fetching_stopped`; `lost` is
called once; no callback raises, and no task outlives its connection.

How absence is proved: nothing here sleeps to see that a job does not come. Another worker takes that job, or a job that
was queued behind it arrives first; either shows that the first worker did not get it.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import pytest

from geartrain.address import Address
from geartrain.client.order import Capabilities
from geartrain.client.protocols import registry
from tests.support import redis_server, serving

Urls = dict[str, str]  # by scheme

DOORS: Final = (
    "gearman://127.0.0.1:0",
    "danga://127.0.0.1:0",
    "periodic://127.0.0.1:0",
    "periodic+unix:///proc/self/cwd/periodic.sock",
    "memodb+tcp://127.0.0.1:0",
    "memodb+ipc:///proc/self/cwd/memodb.sock",
    "memodb+ws://127.0.0.1:0/memo",
    "gearmonkey://127.0.0.1:0",
    "http://127.0.0.1:0",
)


@contextlib.contextmanager
def geartrain(*settings: str, doors: Iterable[str] = DOORS) -> Iterator[Urls]:
    """Our server, with all its doors open."""
    listens = [word for door in doors for word in ("--listen", door)]
    with serving.serve("--store", "memory", *listens, *settings) as server:
        urls = [url.replace("/proc/self/cwd", str(server.home)) for url in server.urls]
        yield {url.partition(":")[0]: url for url in urls}


@contextlib.contextmanager
def redis() -> Iterator[Urls]:
    with redis_server.serve() as server:
        yield {"gearmonkey": server.url}


@contextlib.contextmanager
def gearmand() -> Iterator[Urls]:
    with serving.gearmand() as server:
        yield {"gearman": server.url}


SERVERS: Final[dict[str, Callable[[], contextlib.AbstractContextManager[Urls]]]] = {
    "geartrain": geartrain,
    "redis": redis,
    "gearmand": gearmand,
}


@dataclasses.dataclass(frozen=True)
class Target:
    """A protocol on a server, and what its Capabilities do not tell."""

    scheme: str
    server: str = "geartrain"
    # A worker's `fail` reaches the client with its bytes, and with its code.
    failure_data: bool = True
    failure_code: bool = False
    warnings: bool = False  # `warn` reaches the client
    names_foreground_jobs: bool = True  # the acceptance of a foreground job has a handle
    shares_slots: bool = True  # asks for a job only while `slots` has one, so that several connections can share them
    cancel_finds_jobs: bool = True  # `cancel` knows whether there was a job
    cancels_running_jobs: bool = True
    revokes: bool = False  # a worker is told at once that a job was taken from it
    wakes_for_delayed_jobs: bool = True  # a job that becomes due is assigned at once
    refused_names: tuple[bytes, ...] = (b"",)  # function names that the protocol cannot express
    nonsense: bytes = b"\0XYZ nonsense\r\n\r\n"  # what no server of this protocol sends

    @property
    def protocol(self) -> str:
        return registry.protocol(Address(self.scheme, "", 0, ""))

    @property
    def can(self) -> Capabilities:
        """What its clients can do."""
        return registry.client_class(Address(self.scheme, "", 0, "")).capabilities

    @property
    def worker_can(self) -> Capabilities:
        """What its workers can do."""
        return registry.worker_class(Address(self.scheme, "", 0, "")).capabilities

    def __str__(self) -> str:
        return self.scheme if self.server == "geartrain" else f"{self.scheme}-on-{self.server}"


_GEARMAN: Final = Target("gearman", warnings=True, revokes=True, refused_names=(b"a\0b",))
_PERIODIC: Final = Target(
    "periodic",
    failure_data=False,
    shares_slots=False,
    cancel_finds_jobs=False,
    refused_names=(b"f" * 256,),
)
_MEMODB: Final = Target(
    "memodb+tcp", names_foreground_jobs=False, shares_slots=False, refused_names=(b"", b"\xff"), nonsense=b"\xff" * 16
)
_GEARMONKEY: Final = Target("gearmonkey", cancels_running_jobs=False)

TARGETS: Final = (
    _GEARMAN,
    Target("danga", failure_code=True, revokes=True, refused_names=(b"", b"a\0b")),
    _PERIODIC,
    _MEMODB,
    _GEARMONKEY,
    Target("http", failure_code=True, names_foreground_jobs=False, shares_slots=False, revokes=True),
    # Other transports of the same protocols
    dataclasses.replace(_PERIODIC, scheme="periodic+unix"),
    dataclasses.replace(_MEMODB, scheme="memodb+ipc"),
    dataclasses.replace(_MEMODB, scheme="memodb+ws"),
    # Other people's servers
    dataclasses.replace(_GEARMONKEY, server="redis"),
    dataclasses.replace(
        _GEARMAN, server="gearmand", revokes=False, cancel_finds_jobs=False, wakes_for_delayed_jobs=False
    ),
)

_PEERS: Final = {"redis": "redis-server", "gearmand": "gearmand"}  # as tools/peers.py calls them


def parameters(condition: Callable[[Target], bool] = lambda target: True) -> list[Any]:
    """Targets for pytest; a server that is not installed is named at the end of the run."""
    return [
        pytest.param(target, id=str(target), marks=[pytest.mark.peer(_PEERS[target.server])])
        if target.server in _PEERS
        else pytest.param(target, id=str(target))
        for target in TARGETS
        if condition(target)
    ]


def only(condition: Callable[[Target], bool]) -> pytest.MarkDecorator:
    """Run a test for these targets only."""
    return pytest.mark.parametrize("target", parameters(condition))


def that_can(*capabilities: str) -> pytest.MarkDecorator:
    """Run a test for targets whose clients can do all of this."""
    return only(lambda target: all(getattr(target.can, capability) for capability in capabilities))
