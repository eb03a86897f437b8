"""A load on beanstalkd: put to submit, reserve and delete to work. It has no way to hand back a result."""

from bench import crowd
from bench.crowd import PAYLOAD

LIMIT = 3600  # seconds that a job may take before beanstalkd gives it to another worker
RESERVE = b"reserve\r\n"
INSERTED, RESERVED, DELETED = b"INSERTED ", b"RESERVED ", b"DELETED\r\n"
REFUSALS = (b"OUT_OF_MEMORY", b"INTERNAL_ERROR", b"DRAINING", b"BURIED", b"BAD_FORMAT", b"TOO_BIG", b"EXPECTED_CRLF")


def exchange(peer: crowd.Peer, request: bytes, answer: bytes) -> None:
    """Say something for which the answer is known."""
    peer.socket.sendall(request)
    heard = b""
    while not heard.endswith(b"\r\n"):
        heard += crowd.receive(peer.socket)
    if not heard.startswith(answer):
        raise RuntimeError(f"beanstalkd answered {request!r} with {heard!r}")


class Submits(crowd.Crowd):
    """Puts by `clients` clients with `window` each in flight."""

    def __init__(self, port: int, tube: bytes, clients: int, window: int) -> None:
        super().__init__()
        request = b"put 0 0 %d %d\r\n%b\r\n" % (LIMIT, len(PAYLOAD), PAYLOAD)
        for _ in range(clients):
            client = crowd.Asker(port, self.tally, window, request, INSERTED, REFUSALS)
            exchange(client, b"use %b\r\n" % tube, b"USING ")
            self.add_asker(client)


class Worker:
    """Reserves one job after the other and deletes it."""

    def __init__(self, port: int, tally: crowd.Tally, tube: bytes) -> None:
        self.socket = crowd.connect(port)
        self.tally = tally
        self.rest = b""
        exchange(self, b"watch %b\r\n" % tube, b"WATCHING ")
        exchange(self, b"ignore default\r\n", b"WATCHING ")

    def begin(self) -> None:
        self.socket.sendall(RESERVE)

    def readable(self) -> None:
        data = (self.rest + crowd.receive(self.socket)).removeprefix(DELETED)
        line, _, body = data.partition(b"\r\n")
        if len(body) < len(PAYLOAD) + 2:
            self.rest = data
            return
        self.rest = b""
        if not line.startswith(RESERVED):
            raise RuntimeError(f"beanstalkd gave no job: {line!r}")
        self.tally.done += 1
        self.socket.sendall(b"delete %b\r\n" % line.split()[1] + RESERVE)


class Drain(crowd.Crowd):
    """Workers that come to a full tube."""

    def __init__(self, port: int, tube: bytes, workers: int) -> None:
        super().__init__()
        self.workers = [Worker(port, self.tally, tube) for _ in range(workers)]
        for worker in self.workers:
            self.add(worker)

    def begin(self) -> None:
        for worker in self.workers:
            worker.begin()
