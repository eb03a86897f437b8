"""A steady load of durable submits and completions: how long acknowledgements take, and how the file grows.

    python bench/durability.py [--seconds 20] [--clients 4] [--json]

Each client waits for its acknowledgement before it submits again, so every figure is a whole commit; workers
finish the jobs meanwhile, so the file should reach a size and stay there.
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from bench import crowd, load
from tests.support import serving

FUNCTION = b"durable"
SUBMIT_BG = 18


class Submitter(threading.Thread):
    """One client that waits for every acknowledgement."""

    def __init__(self, port: int, until: float) -> None:
        super().__init__()
        self.until = until
        self.times: list[float] = []
        self.socket = crowd.connect(port)

    def run(self) -> None:
        request = load.packet(SUBMIT_BG, FUNCTION + b"\0\0" + b"x" * 64)
        with self.socket:
            while time.monotonic() < self.until:
                began = time.perf_counter()
                self.socket.sendall(request)
                answer = self.socket.recv(4096)
                if answer[7] != load.CREATED:
                    raise RuntimeError(f"not acknowledged: {answer!r}")
                self.times.append(time.perf_counter() - began)


class Finisher(threading.Thread):
    """One worker that finishes whatever there is."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.peer = load.Peer(port, self.work)
        self.done = 0

    def work(self, peer: load.Peer, kind: int, body: bytes) -> bytes:
        if kind == load.ASSIGN:
            self.done += 1
            handle, _, payload = body.split(b"\0", 2)
            return load.packet(load.COMPLETE, handle + b"\0" + payload) + load.packet(load.GRAB)
        return load.packet(load.PRE_SLEEP if kind == load.NO_JOB else load.GRAB)

    def run(self) -> None:
        self.peer.socket.sendall(load.packet(load.CAN_DO, FUNCTION) + load.packet(load.GRAB))
        try:
            while True:
                self.peer.readable()
        except (ConnectionError, OSError, TimeoutError):
            return


def measure(seconds: float, clients: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "jobs.db"
        options = ("--store", f"sqlite://{file}", "--keep-records", "10000")
        with serving.serve(*options, "--listen", "gearman://127.0.0.1:0") as server:
            finishers = [Finisher(server.port) for _ in range(2)]
            submitters = [Submitter(server.port, time.monotonic() + seconds) for _ in range(clients)]
            for thread in (*finishers, *submitters):
                thread.start()
            sizes = []
            while alive := [thread for thread in submitters if thread.is_alive()]:
                sizes.append(sum(part.stat().st_size for part in pathlib.Path(folder).glob("jobs.db*")))
                print(f"{len(sizes)} s: {sizes[-1] / 1e6:.1f} MB", file=sys.stderr)
                alive[0].join(1)
            for thread in submitters:
                thread.join()
    times = sorted(t * 1000 for thread in submitters for t in thread.times)
    return {
        "submits_per_second": round(len(times) / seconds),
        "ms_median": round(statistics.median(times), 3),
        "ms_p99": round(times[int(len(times) * 0.99)], 3),
        "ms_p999": round(times[int(len(times) * 0.999)], 3),
        "ms_max": round(times[-1], 3),
        "megabytes_by_second": [round(size / 1e6, 1) for size in sizes],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    found = measure(args.seconds, args.clients)
    if args.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:24} {value}")


if __name__ == "__main__":
    main()
