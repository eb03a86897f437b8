"""A load on Redis lists: LPUSH to submit, BRPOP to fetch, and a list for each client's results.

That is the queue that people build by hand. A job that a worker has popped is nowhere else: when the worker dies, it is
gone. A job server promises more, and its figures are to be read with that in mind.
"""

from bench import crowd
from bench.crowd import PAYLOAD

REFUSAL = b"-ERR"
END = b"\r\n"


def command(*words: bytes) -> bytes:
    """A request, in Redis' protocol."""
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


class Client(crowd.Asker):
    """Round trips need two connections: one blocks for results while the other submits."""

    def __init__(self, port: int, tally: crowd.Tally, window: int, jobs: bytes, results: bytes) -> None:
        fetch = command(b"BRPOP", results, b"0")
        super().__init__(port, tally, window, fetch, PAYLOAD, (REFUSAL,))
        self.submit = command(b"LPUSH", jobs, results + b" " + PAYLOAD)
        self.submitter = Listener(port)

    def say(self, count: int) -> None:
        self.submitter.socket.sendall(self.submit * count)
        super().say(count)


class Listener:
    """A connection whose answers say nothing that is needed."""

    def __init__(self, port: int) -> None:
        self.socket = crowd.connect(port)

    def readable(self) -> None:
        answer = crowd.receive(self.socket)
        if REFUSAL in answer:
            raise RuntimeError(f"the server refused: {answer[:200]!r}")


class Worker:
    """Fetches one job after the other, and pushes the payload to the list that the job names."""

    def __init__(self, port: int, tally: crowd.Tally | None, jobs: bytes) -> None:
        self.socket = crowd.connect(port)
        self.tally = tally  # where jobs are counted that nobody waits for
        self.fetch = command(b"BRPOP", jobs, b"0")
        self.head = b"*2\r\n$%d\r\n%b\r\n" % (len(jobs), jobs)
        self.rest = b""

    def begin(self) -> None:
        self.socket.sendall(self.fetch)

    def readable(self) -> None:
        data = self.rest + crowd.receive(self.socket)
        at = data.find(self.head)
        body = data[at + len(self.head) :].split(END) if at >= 0 else []
        if len(body) < 3:
            self.rest = data
            return
        self.rest = b""
        results, _, payload = body[1].partition(b" ")
        if self.tally is None:
            self.socket.sendall(command(b"LPUSH", results, payload) + self.fetch)
        else:
            self.tally.done += 1
            self.socket.sendall(self.fetch)


class Load(crowd.Crowd):
    """Round trips through `workers` workers by `clients` clients with `window` jobs each in flight."""

    def __init__(self, port: int, name: bytes, clients: int, window: int, workers: int) -> None:
        super().__init__()
        for _ in range(workers):
            worker = Worker(port, None, name)
            self.add(worker)
            worker.begin()
        for number in range(clients):
            client = Client(port, self.tally, window, name, b"%b-%d" % (name, number))
            self.add(client.submitter)
            self.add_asker(client)


class Submits(crowd.Crowd):
    """LPUSH by `clients` clients with `window` each in flight."""

    def __init__(self, port: int, name: bytes, clients: int, window: int) -> None:
        super().__init__()
        request = command(b"LPUSH", name, b"nobody " + PAYLOAD)
        for _ in range(clients):
            self.add_asker(crowd.Asker(port, self.tally, window, request, END, (REFUSAL,)))


class Drain(crowd.Crowd):
    """Workers that come to a full list."""

    def __init__(self, port: int, name: bytes, workers: int) -> None:
        super().__init__()
        self.workers = [Worker(port, self.tally, name) for _ in range(workers)]
        for worker in self.workers:
            self.add(worker)

    def begin(self) -> None:
        for worker in self.workers:
            worker.begin()
