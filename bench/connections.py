"""Many connections at once: the memory they take and the rate that is left, beside gearmand, in one run.

python bench/connections.py [--idle 5000] [--workers 1000] [--rounds 3] [--json]
"""

import argparse
import contextlib
import json
import pathlib
import resource
import statistics
import sys
from collections.abc import Callable, Iterator

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from bench import load
from tests.support import serving

FUNCTION = b"echo"
Server = Callable[[], contextlib.AbstractContextManager[serving.ServerProcess]]


def resident(pid: int) -> int:
    """KiB of memory that a process has."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


def measure(start: Server, idle: int, workers: int, jobs: int) -> dict[str, float]:
    """One server: its memory at each stage, and its rate with everybody connected."""
    with start() as server, contextlib.ExitStack() as stack:
        # One job of each kind first, so that what is made once is not counted to the connections.
        warm = load.Load(server.port, FUNCTION, 1, 1, 1)
        warm.run(200)
        warm.close()
        found: dict[str, float] = {"empty_kib": resident(server.pid)}
        for _ in range(idle):
            stack.enter_context(load.connect(server.port))
        found["idle_bytes_each"] = (resident(server.pid) - found["empty_kib"]) * 1024 / max(idle, 1)
        before = resident(server.pid)
        everybody = load.Load(server.port, FUNCTION, 8, 8, workers)
        found["worker_bytes_each"] = (resident(server.pid) - before) * 1024 / max(workers, 1)
        found["jobs_per_second"] = everybody.run(jobs)
        found["full_kib"] = resident(server.pid)
        everybody.close()
        few = load.Load(server.port, FUNCTION, 8, 8, 8)
        found["jobs_per_second_8_workers"] = few.run(jobs)
        few.close()
    return found


@contextlib.contextmanager
def ours() -> Iterator[serving.ServerProcess]:
    with serving.serve("--store", "memory", "--listen", "gearman://127.0.0.1:0") as server:
        yield server


@contextlib.contextmanager
def gearmand() -> Iterator[serving.ServerProcess]:
    with serving.gearmand("-t", "1", "-f", "20000", "-b", "1024") as server:
        yield server


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--idle", type=int, default=5000)
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    rounds: dict[str, list[dict[str, float]]] = {"geartrain": [], "gearmand": []}
    servers: dict[str, Server] = {"geartrain": ours, "gearmand": gearmand}
    for number in range(args.rounds):
        for name in sorted(servers, reverse=bool(number % 2)):
            print(f"round {number + 1} of {args.rounds}: {name}", file=sys.stderr)
            rounds[name].append(measure(servers[name], args.idle, args.workers, args.jobs))
    table = {
        name: {row: statistics.median(found[row] for found in results) for row in results[0]}
        for name, results in rounds.items()
    }
    if args.json:
        print(json.dumps(table))
        return
    print(f"{args.idle} idle connections and {args.workers} sleeping workers; medians of {args.rounds} rounds")
    print(f"{'':28} {'geartrain':>12} {'gearmand':>12} {'ratio':>7}")
    for row, mine in table["geartrain"].items():
        theirs = table["gearmand"][row]
        print(f"{row:28} {mine:12.0f} {theirs:12.0f} {mine / theirs:7.2f}")


if __name__ == "__main__":
    main()
