"""A busy server: clients and workers, and jobs in every state."""

import contextlib
import json
import math
import threading
import time
import urllib.request
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.support import serving
from tests.support.gearman_peer import Kind, Peer, worker
from tests.support.peer import until

BUSY = (b"thumbnail", b"send-mail")
LAST = b"last"  # the payload after which a worker stops
ATTEMPTS = 3
PAUSE = 0.1  # seconds between two waves of submissions
WORK = 0.012  # seconds for each job: less than the waves need when they are high, so that a queue comes and goes
HOSTILE = b'<script>document.title = "taken over"</script><img src="http://example.invalid/x">'


class Scene(NamedTuple):
    """The server, and the handles of jobs that tests use."""

    server: serving.ServerProcess
    url: str
    gearman: int
    waiting: str  # queued; no worker has its function
    doomed: str  # queued as well, to be cancelled
    running: str  # three tenths done
    scheduled: str
    dead: tuple[str, ...]
    hostile: str  # its payload is markup


def api(url: str, path: str, body: Any = None, method: str | None = None) -> Any:
    """The JSON of a path of the API."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{url}/api/v1/{path}", data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        text = answer.read()
    return json.loads(text) if text else None


@contextlib.contextmanager
def serve(*options: str, listen: str = "http://127.0.0.1:0") -> Iterator[tuple[serving.ServerProcess, str, int]]:
    """A server with a Gearman and an HTTP door: itself, the page's address, the Gearman port."""
    with serving.serve("--listen", "gearman://127.0.0.1:0", "--listen", listen, *options) as server:
        urls = {url.partition(":")[0]: url for url in server.urls}
        yield server, urls["http"].rstrip("/"), int(urls["gearman"].rpartition(":")[2])


@contextlib.contextmanager
def busy_server() -> Iterator[Scene]:
    """The server with all of this."""
    with serve("--max-attempts", str(ATTEMPTS)) as (server, url, port), contextlib.ExitStack() as peers:
        client = peers.enter_context(Peer(port))
        queue = {name: client.submit(b"invoice-pdf", name, _invoice(name), kind=Kind.SUBMIT_JOB_BG) for name in _NAMES}
        hostile = client.submit(b"webhook", b"", HOSTILE, kind=Kind.SUBMIT_JOB_BG)
        dead = tuple(_make_dead(port, client, number) for number in range(3))
        running = _make_running(peers, port, client)
        later = str(int(time.time()) + 3600).encode()
        client.send(Kind.SUBMIT_JOB_EPOCH, b"daily-report", b"", later, b'{"to": "team"}')
        scheduled = client.body(Kind.JOB_CREATED)
        until(lambda: api(url, "overview")["dead"] == len(dead), "all that were to die are dead")
        peers.enter_context(_load(port, url))
        yield Scene(
            server, url, port, queue[b"march"].decode(), queue[b"april"].decode(), running.decode(), scheduled.decode(),
            tuple(handle.decode() for handle in dead), hostile.decode(),
        )  # fmt: skip


_NAMES = (b"january", b"february", b"march", b"april", b"may", b"june", b"july")


def _invoice(month: bytes) -> bytes:
    return json.dumps(
        {"customer": 4711, "month": month.decode(), "lines": [{"item": "hosting", "cents": 1900}]}
    ).encode()


def _make_dead(port: int, client: Peer, number: int) -> bytes:
    """A job whose every attempt ends with its worker."""
    payload = b'{"file": "customers-%d.csv", "columns": ["name", "city"]}' % number
    handle = client.submit(b"import-csv", b"", payload, kind=Kind.SUBMIT_JOB_BG)
    for attempt in range(ATTEMPTS):
        with worker(port, b"import-csv") as mortal:
            mortal.send(Kind.SET_CLIENT_ID, b"importer-%d" % attempt)
            assert mortal.grab().handle == handle
    return handle


def _make_running(peers: contextlib.ExitStack, port: int, client: Peer) -> bytes:
    """A job that runs as long as the scene is there."""
    handle = client.submit(b"video-transcode", b"holiday.mov", b'{"file": "holiday.mov"}', kind=Kind.SUBMIT_JOB_BG)
    patient = peers.enter_context(worker(port, b"video-transcode"))
    patient.send(Kind.SET_CLIENT_ID, b"transcoder-1")
    assert patient.grab().handle == handle
    patient.send(Kind.WORK_STATUS, handle, b"3", b"10")
    patient.silence()
    return handle


@contextlib.contextmanager
def _load(port: int, url: str) -> Iterator[None]:
    """A client and two workers, until the block is left."""
    stop = threading.Event()
    workers = [threading.Thread(target=_work, args=(port, number, stop)) for number in range(2)]
    client = threading.Thread(target=_submit, args=(port, url, stop, len(workers)))
    threads = [*workers, client]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(20)


def _submit(port: int, url: str, stop: threading.Event, workers: int) -> None:
    """Waves of jobs, so that the charts have something to show."""
    with Peer(port) as client:
        begun = time.monotonic()
        number = 0
        while not stop.wait(PAUSE):
            age = time.monotonic() - begun
            for _ in range(round(9 + 5 * math.sin(age / 7) + 3 * math.sin(age / 2.3))):
                number += 1
                payload = b'{"photo": %d}' % number
                client.submit(BUSY[number % 3 == 0], b"", payload, kind=Kind.SUBMIT_JOB_BG)
            api(url, "jobs", {"function": "send-mail", "payload": '{"photo": 1}'})
        for _ in range(workers):
            client.submit(BUSY[0], b"", LAST, kind=Kind.SUBMIT_JOB_HIGH_BG)


def _work(port: int, number: int, stop: threading.Event) -> None:
    with worker(port, *BUSY) as peer:
        peer.send(Kind.SET_CLIENT_ID, b"studio-%d" % number)
        payload = b""
        while payload != LAST:
            job = peer.grab()
            payload = job.data
            stop.wait(WORK)
            photo = int(payload[10:-1]) if payload.endswith(b"}") else 0
            if photo % 80 == 7:
                peer.send(Kind.WORK_FAIL, job.handle)
            elif photo % 80 == 47:
                peer.send(
                    Kind.WORK_EXCEPTION, job.handle, b"OSError: no space on disk %d of 'images-%d'" % (photo % 3, photo)
                )
            else:
                peer.send(Kind.WORK_COMPLETE, job.handle, b'{"bytes": 48213}')
