"""How long a background job takes from its submission until an idle worker has it, on any Gearman server.

One process plays client and worker, so that one clock measures both ends. The worker sleeps as the libraries do: it is
told that there is something, asks for it, and gets it.
"""

import contextlib
import socket
import statistics
import time
from collections.abc import Iterator

from bench import crowd, load

FUNCTION = b"start"


def median(submit_to: int, work_at: int, count: int) -> float:
    """Seconds, of so many jobs one after the other; client and worker may be on different servers, by their ports."""
    with crowd.connect(submit_to) as client, crowd.connect(work_at) as worker:
        answers, offers = _packets(client), _packets(worker)
        worker.sendall(load.packet(load.CAN_DO, FUNCTION) + load.GRAB_AGAIN)
        return statistics.median(_start(client, worker, answers, offers) for _ in range(count))


def _start(
    client: socket.socket,
    worker: socket.socket,
    answers: Iterator[tuple[int, bytes]],
    offers: Iterator[tuple[int, bytes]],
) -> float:
    _expect(offers, load.NO_JOB)
    worker.sendall(load.SLEEP)
    began = time.perf_counter()
    client.sendall(load.packet(load.SUBMIT_BG, FUNCTION + b"\0\0" + crowd.PAYLOAD))
    _expect(offers, load.NOOP)
    worker.sendall(load.GRAB_AGAIN)
    body = _expect(offers, load.ASSIGN)
    took = time.perf_counter() - began
    _expect(answers, load.CREATED)
    worker.sendall(load.packet(load.COMPLETE, body.partition(b"\0")[0] + b"\0") + load.GRAB_AGAIN)
    return took


def _expect(packets: Iterator[tuple[int, bytes]], kind: int) -> bytes:
    found, body = next(packets)
    if found != kind:
        raise RuntimeError(f"the server sent {found} instead of {kind}: {body!r}")
    return body


def _packets(connection: socket.socket) -> Iterator[tuple[int, bytes]]:
    """What the server sends, packet by packet."""
    received = b""
    with contextlib.closing(connection):
        while True:
            while len(received) >= load.HEADER.size:
                _, kind, size = load.HEADER.unpack_from(received)
                end = load.HEADER.size + size
                if len(received) < end:
                    break
                yield kind, received[load.HEADER.size : end]
                received = received[end:]
            received += crowd.receive(connection)
