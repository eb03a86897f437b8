"""kill -9 at any moment, again and again, on one file: every job that was acknowledged is there, exactly once."""

import random
import threading
from contextlib import AbstractContextManager
from pathlib import Path

from tests.crash.conftest import Start
from tests.crash.load import FUNCTION, Account, Job, load
from tests.support.gearman_peer import Kind, Peer
from tests.support.serving import ServerProcess

EARLIEST, LATEST = 0.001, 0.3  # seconds after the first acknowledgement of a life
DRAIN_EVERY = 10  # lives
PATIENT = ("--max-attempts", "0")  # one job of a million loses ten workers in a row, and would be set aside as dead


def test_no_acknowledged_job_is_ever_lost(start: Start, path: Path, rounds: int, seed: int) -> None:
    check_many_lives(start, path, rounds, seed)


def test_no_job_is_lost_whose_payload_is_on_disk_only(start: Start, path: Path, rounds: int, seed: int) -> None:
    """Hardly any payload has room in memory, before and after each start."""

    def serve(*flags: str) -> AbstractContextManager[ServerProcess]:
        return start("--payload-memory", "4kB", *flags)

    check_many_lives(serve, path, rounds, seed)


def check_many_lives(start: Start, path: Path, rounds: int, seed: int) -> None:
    chance = random.Random(seed)
    account = Account()
    for life in range(rounds):
        with start(*PATIENT) as server, Peer(server.port) as peer:
            check_after_restart(peer, account, f"after life {life}")
            if life % DRAIN_EVERY == DRAIN_EVERY - 1:
                drain(server.port, account)
            with load(server.port, account, chance.randrange(2**32), str(life)):
                threading.Event().wait(chance.uniform(EARLIEST, LATEST))
                server.kill()
        assert account.problems == []
    with start(*PATIENT) as server:
        with Peer(server.port) as peer:
            check_after_restart(peer, account, "at the end")
        drain(server.port, account)
    assert account.problems == []
    assert not list(path.parent.glob("*.damaged-*")), "a kill damages nothing"


def check_after_restart(peer: Peer, account: Account, when: str) -> None:
    """What the server says that it has is what it must have, and nothing that it cannot have."""
    listed = [handle for handle, *_ in peer.listing("show jobs")]
    present = set(listed)
    assert len(present) == len(listed), f"{when}: a handle is listed twice"
    promised = {job.handle for job in account.jobs.values() if job.promised}
    missing = promised - present
    assert not missing, f"{when}: {len(missing)} of {len(promised)} jobs are lost, such as {sorted(missing)[:5]}"
    strangers = len(present - account.handles.keys())
    unanswered = sum(not job.handle for job in account.jobs.values())
    assert strangers <= unanswered, f"{when}: {strangers} jobs are new, but only {unanswered} were never answered"


def drain(port: int, account: Account) -> None:
    """Take every job that is due, in order: each comes once, with its handle, unique and payload."""
    taken: list[Job] = []
    with Peer(port).register(FUNCTION) as worker:
        while (given := worker.take(Kind.GRAB_JOB_UNIQ)) is not None:
            job = account.give(given.data, given.handle)
            assert job is not None, account.problems
            assert (given.function, given.unique) == (FUNCTION, job.unique)
            assert not job.scheduled, "it is not due for years"
            worker.send(Kind.WORK_COMPLETE, given.handle, b"")
            job.ended = True
            taken.append(job)
        worker.silence()
        left = [handle for handle, *_ in worker.listing("show jobs")]
    assert len({job.payload for job in taken}) == len(taken), "a job came twice"
    check_order(taken)
    promised = {job.handle for job in account.jobs.values() if job.promised}
    assert promised <= set(left)
    assert all(job.scheduled for job in account.jobs.values() if job.promised), "a job was never handed out"
    account.forget_ended()


def check_order(taken: list[Job]) -> None:
    """High before normal before low; and within each, what a client submitted first comes first.

    A job that a worker was given before, and lost, stands where it was put back.
    """
    assert [job.priority for job in taken] == sorted(job.priority for job in taken)
    last: dict[tuple[bytes, int], bytes] = {}
    for job in taken:
        if job.given > 1:
            continue
        client, number = job.payload.rsplit(b".", 1) if job.payload.count(b".") == 2 else _long(job.payload)
        assert last.get((client, job.priority), b"") < number, f"{job.payload[:40]!r} came too late"
        last[client, job.priority] = number


def _long(payload: bytes) -> tuple[bytes, bytes]:
    """A payload with ballast behind its name."""
    life, client, number, _ = payload.split(b".", 3)
    return b".".join((life, client)), number
