"""How long a peer waits for its answer while another one floods a door: one kind of flood after the other.

python bench/fairness.py [--seconds 2] [--jobs 20000] [--only gearman] [--unread] [--json]
python bench/fairness.py --bulk 1000000     # instead of floods: LOAD and then DROP_FUNC of so many jobs by Periodic

The bystander asks the Gearman door for its version, over and over. The flood keeps one connection full and reads the
answers, or, with --unread, does not read them. A flood that is refused connects again. The first line has no flood.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import pathlib
import random
import selectors
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from bench import connections, contenders
from bench.figures import percentile
from geartrain.wire import danga, gearman, periodic, periodic_client, resp, sp
from tests.support import serving

DOORS = ("gearman", "danga", "periodic", "memodb+tcp", "gearmonkey", "http")
BETWEEN = 0.002  # seconds between an answer to the bystander and its next request
LARGEST_PAYLOAD = 64 * 1024
CHUNK = 256 * 1024  # bytes that a flood sends at once, about
NICE = 19  # the flood must not take the bystander's time

NOISE = random.Random(1).randbytes(CHUNK)


class Flood(NamedTuple):
    """Bytes that one peer sends without end."""

    door: str
    name: str
    request: bytes | Callable[[int], bytes]  # or what makes it from the id of the job with the large payload
    first: bytes = b""  # sent once, after the connection is made


def line(text: bytes) -> bytes:
    return text + b"\r\n"


def message(body: bytes) -> bytes:
    """A message of MemoDB, with its length."""
    request = struct.pack(">I", 0x80000001) + body
    return struct.pack(">Q", len(request)) + request


def of_large_job(*words: bytes) -> Callable[[int], bytes]:
    """A command of GearMonkey about the job with the large payload, whose key each `KEY` stands for."""
    return lambda number: resp.request(*(b"job:large:%d" % number if word == b"KEY" else word for word in words))


def http(path: bytes) -> bytes:
    return b"GET %b HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % path


REGISTRATION = periodic_client.registration(periodic.CLIENT)
GREETING = sp.greeting(sp.REQ)
COALESCED = gearman.request(gearman.SUBMIT_JOB_BG, b"flood", b"unique", b"x")

FLOODS = (
    Flood("gearman", "random bytes", NOISE),
    Flood("gearman", "unknown lines", b"x\n"),
    Flood("gearman", "responses (an error each)", gearman.response(gearman.NOOP)),
    Flood("gearman", "ECHO_REQ", gearman.request(gearman.ECHO_REQ, b"x")),
    Flood("gearman", "ECHO_REQ of 64 kB", gearman.request(gearman.ECHO_REQ, bytes(LARGEST_PAYLOAD))),
    Flood("gearman", "GRAB_JOB", gearman.request(gearman.GRAB_JOB)),
    Flood("gearman", "CAN_DO and GRAB_JOB", gearman.request(gearman.CAN_DO, b"f") + gearman.request(gearman.GRAB_JOB)),
    Flood("gearman", "SUBMIT_JOB_BG, coalesced", COALESCED),
    Flood("gearman", "SUBMIT_JOB, coalesced", gearman.request(gearman.SUBMIT_JOB, b"flood", b"unique", b"x")),
    Flood("gearman", "status", b"status\n"),
    Flood("gearman", "workers", b"workers\n"),
    Flood("gearman", "show jobs", b"show jobs\n"),
    Flood("gearman", "show unique jobs", b"show unique jobs\n"),
    Flood("danga", "random bytes", NOISE),
    Flood("danga", "job_status_req", danga.job_status_req(b"H:t:1")),
    Flood("danga", "job_complete_req", danga.job_complete_req(b"H:t:1")),
    Flood("periodic", "random bytes", NOISE),
    Flood("periodic", "PING", periodic_client.request(1, periodic.PING), REGISTRATION),
    Flood("periodic", "unknown commands", periodic_client.request(1, 250), REGISTRATION),
    Flood("periodic", "STATUS", periodic_client.request(1, periodic.STATUS), REGISTRATION),
    Flood("periodic", "DUMP", periodic_client.request(1, periodic.DUMP), REGISTRATION),
    Flood("memodb+tcp", "random bytes", NOISE, GREETING),
    Flood("memodb+tcp", "invalid messages", message(b"x"), GREETING),
    Flood("memodb+tcp", "one request, repeated", message(bytes.fromhex("85666d656d6f30310240616619ea60")), GREETING),
    Flood("gearmonkey", "random bytes", NOISE),
    Flood("gearmonkey", "unknown commands", line(b"x")),
    Flood("gearmonkey", "PING", resp.request(b"PING")),
    Flood("gearmonkey", "HGETALL of 64 kB", of_large_job(b"HGETALL", b"KEY")),
    Flood("gearmonkey", "HMGET of 100 times 64 kB", of_large_job(b"HMGET", b"KEY", *[b"input"] * 100)),
    Flood("gearmonkey", "HGETALL of no job", resp.request(b"HGETALL", b"job:large:1")),
    Flood("gearmonkey", "KEYS *", resp.request(b"KEYS", b"*")),
    Flood("gearmonkey", "EXISTS of 1000 keys", of_large_job(b"EXISTS", *[b"KEY"] * 1000)),
    Flood("gearmonkey", "LRANGE", resp.request(b"LRANGE", b"queue:f0:normal", b"0", b"-1")),
    Flood("http", "random bytes", NOISE),
    Flood("http", "GET /health", http(b"/health")),
    Flood("http", "GET /api/v1/jobs", http(b"/api/v1/jobs?limit=1000")),
)


class Found(NamedTuple):
    """What the bystander measured, in milliseconds, and the largest memory of the server, in MiB."""

    door: str
    flood: str
    p50: float
    p99: float
    max: float
    answers: int
    memory: float


def fill(port: int, jobs: int) -> int:
    """Queue jobs of a hundred functions, after one with a large payload, whose id is returned."""
    handles = []
    with socket.create_connection((serving.HOST, port)) as peer, peer.makefile("rb") as answers:
        packets = [gearman.request(gearman.SUBMIT_JOB_BG, b"large", b"", bytes(LARGEST_PAYLOAD))]
        packets += [
            gearman.request(gearman.SUBMIT_JOB_BG, b"f%d" % (n % 100), b"u%d" % n, b"x" * 64) for n in range(jobs)
        ]
        for begin in range(0, len(packets), 1000):
            batch = packets[begin : begin + 1000]
            peer.sendall(b"".join(batch))
            for _ in batch:
                header = answers.read(12)
                handles.append(answers.read(int.from_bytes(header[8:], "big")))
    return int(handles[0].rpartition(b":")[2])


def flooding(port: int, request: bytes, first: bytes, reads: bool) -> None:
    """Keep the connection full until this process is terminated."""
    os.nice(NICE)
    data = request * max(CHUNK // len(request), 1)
    while True:
        with contextlib.suppress(OSError), socket.create_connection((serving.HOST, port)) as peer:
            peer.sendall(first)
            _send_for_ever(peer, data, reads)


def _send_for_ever(peer: socket.socket, data: bytes, reads: bool) -> None:
    peer.setblocking(False)
    with selectors.DefaultSelector() as selector:
        selector.register(peer, selectors.EVENT_WRITE | (selectors.EVENT_READ if reads else 0))
        rest = memoryview(data)
        while True:
            for _, events in selector.select():
                if events & selectors.EVENT_READ and not peer.recv(CHUNK):
                    return
                if events & selectors.EVENT_WRITE:
                    rest = rest[peer.send(rest) :] or memoryview(data)


@contextlib.contextmanager
def flooded(port: int, flood: Flood | None, large_job: int, reads: bool) -> Iterator[None]:
    """A process that floods, for the time of the block."""
    if flood is None:
        yield
        return
    request = flood.request if isinstance(flood.request, bytes) else flood.request(large_job)
    arguments = (port, request, flood.first, reads)
    process = multiprocessing.get_context("fork").Process(target=flooding, args=arguments, daemon=True)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def ask(port: int, pid: int, goes_on: Callable[[], bool]) -> tuple[list[float], float]:
    """Times of answers to the bystander, in milliseconds and ordered, and the largest memory in MiB."""
    times = []
    memory = 0
    with socket.create_connection((serving.HOST, port)) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while goes_on():
            begin = time.perf_counter()
            peer.sendall(b"version\n")
            while not peer.recv(100).endswith(b"\n"):
                pass
            times.append((time.perf_counter() - begin) * 1000)
            memory = max(memory, connections.resident(pid))
            time.sleep(BETWEEN)
    return sorted(times), memory / 1024


def measure(flood: Flood | None, seconds: float, jobs: int, reads: bool) -> Found:
    """One flood on a server of its own."""
    with contenders.running(contenders.geartrain(*DOORS, durable=False)) as place:
        ports = {
            door: int(url.rpartition(":")[2].partition("/")[0]) for door, url in zip(DOORS, place.urls, strict=True)
        }
        large_job = fill(ports["gearman"], jobs)
        with flooded(ports[flood.door] if flood else 0, flood, large_job, reads):
            ends = time.monotonic() + seconds
            times, memory = ask(ports["gearman"], place.pid, lambda: time.monotonic() < ends)
    names = (flood.door, flood.name) if flood else ("-", "no flood")
    return found(*names, times, memory)


def found(door: str, name: str, times: list[float], memory: float) -> Found:
    p50, p99 = percentile(times, 0.5) or 0.0, percentile(times, 0.99) or 0.0
    return Found(door, name, p50, p99, times[-1], len(times), memory)


def one_request(port: int, payload: bytes) -> None:
    """Send one request of Periodic, and wait for its answer."""
    os.nice(NICE)
    with socket.create_connection((serving.HOST, port)) as peer, peer.makefile("rb") as answers:
        for packet in (REGISTRATION, periodic.frame(periodic.TODAY, periodic.REQUEST, payload)):
            peer.sendall(packet)
            header = answers.read(12)
            answer = answers.read(int.from_bytes(header[4:8], "big"))
        assert answer[4:] == bytes([periodic.SUCCESS]), answer


def measure_bulk(jobs: int) -> Iterator[Found]:
    """LOAD of this many jobs, and DROP_FUNC of all of them."""
    listed = periodic.jobs([periodic.PeriodicJob(b"f", b"%d" % number, b"", 2**31, 0, 0) for number in range(jobs)])
    requests = {
        "LOAD": bytes([periodic.LOAD]) + listed,
        "DROP_FUNC": bytes([periodic.DROP_FUNC]) + periodic.short(b"f"),
    }
    with contenders.running(contenders.geartrain("gearman", "periodic", durable=False)) as place:
        port, periodic_port = (int(url.rpartition(":")[2]) for url in place.urls)
        for name, request in requests.items():
            process = multiprocessing.get_context("fork").Process(
                target=one_request, args=(periodic_port, b"0001" + request)
            )
            process.start()
            times, memory = ask(port, place.pid, process.is_alive)
            process.join()
            assert process.exitcode == 0
            yield found("periodic", f"{name} of {jobs} jobs", times, memory)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=2.0, help="for each flood")
    parser.add_argument("--jobs", type=int, default=20_000, help="queued before each flood")
    parser.add_argument("--only", default="", help="floods whose door or name contains this")
    parser.add_argument("--unread", action="store_true", help="the flood does not read its answers")
    parser.add_argument("--bulk", type=int, default=0, help="measure LOAD and DROP_FUNC of this many jobs instead")
    parser.add_argument("--json", action="store_true", help="print one object for each flood")
    options = parser.parse_args()
    floods = [flood for flood in FLOODS if options.only in f"{flood.door} {flood.name}"]
    if not options.json:
        print(f"{'door':11} {'flood':26} {'p50 ms':>8} {'p99 ms':>8} {'max ms':>8} {'answers':>8} {'MiB':>6}")
    with contenders.own_core():
        rows = (
            measure_bulk(options.bulk)
            if options.bulk
            else (measure(flood, options.seconds, options.jobs, not options.unread) for flood in (None, *floods))
        )
        for row in rows:
            if options.json:
                print(json.dumps(row._asdict()), flush=True)
            else:
                door, name, p50, p99, most, answers, memory = row
                print(f"{door:11} {name:26} {p50:8.2f} {p99:8.2f} {most:8.2f} {answers:8} {memory:6.0f}", flush=True)


if __name__ == "__main__":
    main()
