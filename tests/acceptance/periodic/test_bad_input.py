"""Whatever is malformed closes that connection, with the reason in the log, and hurts nobody else."""

import itertools
from collections.abc import Callable, Iterator

import pytest

from tests.acceptance.periodic.conftest import Start
from tests.support import serving
from tests.support.periodic_peer import (
    CLIENT,
    WORKER,
    Command,
    Dial,
    Dialect,
    Peer,
    config,
    frame,
    job,
    jobs,
    text,
)

HANDLE = text(b"function") + text(b"name")
OPAQUE_HANDLE = text(b"H:host:1")
FAR = 4_000_000_000

# Complete arguments of every command that has some.
OF_CLIENTS = {
    Command.SUBMIT_JOB: job(b"f", b"n", b"payload", FAR, count=1, timeout=1),
    Command.RUN_JOB: job(b"f", b"n", b"payload", FAR, count=1),
    Command.DROP_FUNC: text(b"f"),
    Command.REMOVE_JOB: text(b"f") + text(b"n"),
    Command.LOAD: jobs(job(b"f", b"n", run_at=FAR), job(b"f", b"m", run_at=FAR)),
    Command.CONFIG_GET: config(b"timeout"),
    Command.CONFIG_SET: config(b"unheard-of", 5),
}
OF_WORKERS = {Command.CAN_DO: text(b"f"), Command.CANT_DO: text(b"f"), Command.BROADCAST: text(b"f")}
ABOUT_JOBS = {Command.WORK_DONE: b"", Command.WORK_FAIL: b"", Command.SCHED_LATER: bytes(10)}
OF_TODAY = {
    Command.RECV_DATA: job(b"f", b"n"),
    Command.WORK_DATA: HANDLE,
    Command.ACQUIRE: text(b"lock") + b"\0\1" + HANDLE,
    Command.RELEASE: text(b"lock") + HANDLE,
}
COMPLETE = {
    Dialect.DOCUMENT: {
        **OF_CLIENTS,
        **OF_WORKERS,
        **{command: OPAQUE_HANDLE + rest for command, rest in ABOUT_JOBS.items()},
    },
    Dialect.TODAY: {
        **OF_CLIENTS,
        **OF_WORKERS,
        **OF_TODAY,
        **{command: HANDLE + rest for command, rest in ABOUT_JOBS.items()},
    },
}
_IN_BOTH = (Command.GRAB_JOB, Command.SLEEP, *OF_WORKERS, *ABOUT_JOBS)
_TODAY = (Command.JOB_ASSIGNED, Command.JOB_UNASSIGNED, Command.WORK_DATA, Command.ACQUIRE, Command.RELEASE)
FOR_WORKERS = {Dialect.DOCUMENT: _IN_BOTH, Dialect.TODAY: (*_IN_BOTH, *_TODAY)}
_serial = itertools.count()


@pytest.fixture
def sent_away(server: serving.ServerProcess, dial: Dial) -> Iterator[Callable[[Peer, str], None]]:
    """Checks that a peer is closed and the log says why; and in the end that another one was not disturbed."""
    witness = dial(Dialect.TODAY, WORKER).offer(b"witness")
    grab = witness.grab()

    def check(peer: Peer, why: str) -> None:
        name = peer.socket.getsockname()
        peer.rest()  # what was said before it was noticed
        assert server.says(f"peer refused  peer={name[0]}:{name[1]}")
        lines = [line for line in server.stderr.splitlines() if f":{name[1]}" in line]
        assert len(lines) == 1, lines
        assert why in lines[0]

    yield check
    witness.silence()
    witness.submit(b"witness", b"%d" % next(_serial))
    witness.done(witness.assigned(grab))


@pytest.mark.parametrize(
    ("dialect", "command"), [(dialect, command) for dialect, table in COMPLETE.items() for command in table]
)
def test_arguments_that_are_cut_off(
    dial: Dial, sent_away: Callable[[Peer, str], None], dialect: Dialect, command: Command
) -> None:
    """Wherever they can be. A job with four bytes after its time is one from before there were versions."""
    whole = COMPLETE[dialect][command]
    for size in range(len(whole)):
        if command in (Command.SUBMIT_JOB, Command.RUN_JOB) and size == len(job(b"f", b"n", b"payload")) - 1 + 4:
            continue
        peer = dial(dialect, WORKER)
        peer.send(command, whole[:size])
        sent_away(peer, "the arguments of a command are cut off")


@pytest.mark.parametrize(
    ("dialect", "command"), [(dialect, command) for dialect, table in FOR_WORKERS.items() for command in table]
)
def test_a_worker_s_command_from_a_client_is_accepted(dial: Dial, command: Command, dialect: Dialect) -> None:
    peer = dial(dialect, CLIENT)
    peer.send(command, COMPLETE[dialect].get(command, b""))
    peer.expect(peer.send(Command.PING), Command.PONG)


def test_a_wrong_crc(dial: Dial, sent_away: Callable[[Peer, str], None]) -> None:
    peer = dial(Dialect.TODAY)
    said = bytearray(frame(Dialect.TODAY, b"aaaa\x09"))
    said[-1] ^= 1
    peer.raw(bytes(said))
    sent_away(peer, "the CRC of a frame does not match")


def test_a_wrong_crc_at_first(dial: Dial, sent_away: Callable[[Peer, str], None]) -> None:
    peer = dial(Dialect.TODAY, None).raw(bytes.fromhex("00524551 00000001 3c0c8ea0 02"))
    sent_away(peer, "the CRC of a frame does not match")


@pytest.mark.parametrize("size", [2**31, 2**32 - 1, 64 * 1024**2 + 1])
@pytest.mark.parametrize("kind", [None, CLIENT])
def test_a_size_beyond_the_limit(
    dial: Dial, sent_away: Callable[[Peer, str], None], dialect: Dialect, size: int, kind: int | None
) -> None:
    """It is refused before anything of it has arrived."""
    peer = dial(dialect, kind).raw(b"\0REQ" + size.to_bytes(4, "big"))
    sent_away(peer, f"a frame of {size} bytes was announced")


@pytest.mark.parametrize("said", [b"\0RES\0\0\0\5aaaa\x09", b"\0REQ"[::-1] * 5, b"\xff"])
def test_a_wrong_magic(dial: Dial, sent_away: Callable[[Peer, str], None], dialect: Dialect, said: bytes) -> None:
    sent_away(dial(dialect).raw(said), "a frame starts with NUL and REQ")


@pytest.mark.parametrize("payload", [b"", b"a", b"aaaa"])
def test_a_frame_without_a_command(
    dial: Dial, sent_away: Callable[[Peer, str], None], dialect: Dialect, payload: bytes
) -> None:
    peer = dial(dialect).raw(frame(dialect, payload))
    sent_away(peer, "a frame has a message id and a command")


def test_what_came_before_is_answered(dial: Dial, dialect: Dialect, function: bytes) -> None:
    """Also what has to be on disk first; what comes after is not carried out."""
    peer = dial(dialect)
    peer.raw(
        frame(dialect, b"aaaa\x0d" + job(function, b"before", run_at=FAR))
        + frame(dialect, b"bbbb\x0d" + b"\xff")
        + frame(dialect, b"cccc\x0d" + job(function, b"after", run_at=FAR))
    )
    peer.expect(b"aaaa", Command.SUCCESS)
    peer.closed()
    names = [entry.name for entry in dial(dialect).dump() if entry.function == function]
    assert names == [b"before"]


def test_a_worker_that_is_sent_away_loses_its_jobs_at_once(
    dial: Dial, worker: Peer, hire: Callable[..., Peer], function: bytes
) -> None:
    other = hire(function)
    worker.submit(function, b"name")
    worker.take()
    worker.grab()
    grab = other.grab()
    worker.raw(b"garbage")
    assert other.assigned(grab).name == b"name"


def test_a_frame_that_stops_arriving(start: Start, dialect: Dialect) -> None:
    with start("--stall-timeout", "200ms") as server, Peer(server.port, dialect) as peer:
        peer.raw(frame(dialect, b"aaaa\x0d" + b"x" * 100)[:50])
        peer.closed()
        assert server.says("no more of a packet arrived")


def test_bytes_after_the_arguments_are_passed_over(dial: Dial, dialect: Dialect, function: bytes) -> None:
    peer = dial(dialect, WORKER)
    peer.expect(peer.send(Command.PING, b"more"), Command.PONG)
    peer.confirmed(Command.CAN_DO, text(function) + b"more")
    peer.succeed(Command.DROP_FUNC, text(b"unheard of") + b"more")
    peer.silence()
