"""Our server with very many connections beside the load: workers that offer something else, and sleep."""

import contextlib
from collections.abc import Iterator

from bench import connections, contenders, crowd, load
from bench.contenders import Contender, Place

ASLEEP = load.packet(load.CAN_DO, b"something else") + load.packet(load.PRE_SLEEP)


def beside(count: int, name: str) -> Contender:
    """A server with so many of them; it is ready when the last is accepted and heard."""
    server = contenders.geartrain("gearman", durable=False)

    @contextlib.contextmanager
    def start() -> Iterator[Place]:
        connections.allow_many()
        with server() as place, contextlib.ExitStack() as stack:
            for _ in range(count):
                worker = stack.enter_context(crowd.connect(place.port))
                worker.sendall(ASLEEP)
            connections.rate(place.port, 1, connections.WARM_UP)
            yield place

    return Contender(name, f"geartrain serve --store memory, {name} of another function", start, ours=count > 1000)


FEW, MANY = beside(1_000, "1 thousand sleeping workers"), beside(10_000, "10 thousand sleeping workers")
