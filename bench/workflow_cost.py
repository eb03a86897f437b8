"""What a member of a workflow costs the server, beside a plain background job: submitted, run and recorded.

python bench/workflow_cost.py [--members 100000] [--rounds 3] [--store sqlite] [--json]

Plain jobs are submitted by HTTP, a thousand in one request; the workflow, with a callback that waits for all of its
members, in one. The same Gearman workers run both. Costs are processor time of the server. While the workflow is
submitted, a bystander asks the server for its version over and over: the longest time that it waits is shown, too.
"""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from typing import Any, NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from bench import load
from tests.support import serving
from tests.support.gearman_peer import Peer

FUNCTION = b"echo"
WORKERS = 8
AT_ONCE = 1000  # plain jobs in a request
TICKS = os.sysconf("SC_CLK_TCK")


class Found(NamedTuple):
    """One measurement."""

    microseconds: float  # of the server, per job
    longest_wait: float  # milliseconds, of a bystander during the submission


def processor_time(pid: int) -> float:
    """Seconds that a process has used."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def post(url: str, path: str, body: Any) -> Any:
    request = urllib.request.Request(
        f"{url}/api/v1{path}", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


@contextlib.contextmanager
def bystander(port: int) -> Iterator[list[float]]:
    """Another client; the list gets how long it waited for each answer, in milliseconds."""
    waits: list[float] = []
    is_over = threading.Event()

    def ask() -> None:
        with Peer(port) as peer:
            while not is_over.wait(0.001):
                began = time.monotonic()
                peer.text("version")
                peer.line()
                waits.append((time.monotonic() - began) * 1000)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield waits
    finally:
        is_over.set()
        thread.join()


def submit(url: str, members: int, is_workflow: bool) -> int:
    """Submit the jobs; return how many there are."""
    job = {"function": FUNCTION.decode(), "payload": "x" * 64}
    if is_workflow:
        callback = {**job, "after": list(range(members))}
        post(url, "/workflows", {"name": "cost", "jobs": [job] * members + [callback]})
        return members + 1
    for _ in range(members // AT_ONCE):
        post(url, "/jobs/batch", {"jobs": [job] * AT_ONCE})
    return members // AT_ONCE * AT_ONCE


def measure(store: str, members: int, is_workflow: bool) -> Found:
    with tempfile.TemporaryDirectory() as folder:
        where = "memory" if store == "memory" else f"sqlite://{folder}/jobs.db"
        doors = ("--listen", "gearman://127.0.0.1:0", "--listen", "http://127.0.0.1:0")
        with serving.serve("--store", where, *doors) as server:
            began = processor_time(server.pid)
            with bystander(server.port) as waits:
                count = submit(server.urls[1], members, is_workflow)
            drain = load.Drain(server.port, FUNCTION, WORKERS)
            drain.begin()
            drain.until(lambda: drain.tally.done >= count and drain.asleep >= WORKERS)
            return Found((processor_time(server.pid) - began) / count * 1e6, max(waits, default=0.0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--store", choices=("sqlite", "memory"), default="sqlite")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    pairs = []
    for number in range(options.rounds):
        kinds = (False, True) if number % 2 == 0 else (True, False)
        found = {kind: measure(options.store, options.members, kind) for kind in kinds}
        pairs.append((found[False], found[True]))
        print(f"round {number + 1}: plain {found[False]}, member {found[True]}", file=sys.stderr)
    ratio = statistics.median(member.microseconds / plain.microseconds for plain, member in pairs)
    if options.json:
        print(json.dumps({"ratio": ratio, "rounds": [[*plain, *member] for plain, member in pairs]}))
        return
    longest = max(member.longest_wait for _, member in pairs)
    print(f"processor time of the server for a member, beside that for a plain job: {ratio:.2f} (median)")
    print(f"longest wait of a bystander while {options.members:,} members were submitted: {longest:.0f} ms")


if __name__ == "__main__":
    main()
