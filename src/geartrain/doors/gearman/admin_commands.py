"""The administrative protocol: one line of text, one answer, with the bytes that gearmand sends.

Lists end with a line of a single dot and use LF; OK and ERR lines end with CRLF, except those of `version`,
`getpid` and `verbose`.
"""

import itertools
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from geartrain import escape
from geartrain.admin import borrowed_jobs
from geartrain.audit import FAILED, REFUSED
from geartrain.doors.gearman import unique
from geartrain.doors.gearman.cluster_status import NOTHING, StatusCounts, WorkerLine, own_counts
from geartrain.doors.long_answer import LongAnswer, StreamedAnswer
from geartrain.engine.function import Function
from geartrain.engine.job import LiveJob
from geartrain.errors import DuplicateKeyError, LineError, RequestError
from geartrain.rights import ADMIN, READ
from geartrain.runtime.other_servers import DistantJob, JobName, UnreachableError
from geartrain.wire.gearman import number

if TYPE_CHECKING:
    from geartrain.doors.gearman.connection import GearmanConnection

# None: the command answers later.
Command = Callable[["GearmanConnection", list[bytes]], bytes | LongAnswer | None]

_OK: Final = b"OK\r\n"
_UNKNOWN_JOB: Final = b"ERR UNKNOWN_JOB\r\n"
_UNIQUE_IN_USE: Final = b"ERR UNIQUE_IN_USE Another+job+has+its+unique+key+now\r\n"
_OF_DEAD_JOBS: Final = frozenset({b"retry", b"delete"})  # commands
_UNREACHABLE: Final = b"ERR UNREACHABLE The+server+that+has+this+job+does+not+answer;+try+again\r\n"


def handle(connection: "GearmanConnection", line: bytes) -> None:
    """Run the command in one line, and answer.

    A command that needs a right asks the engine for it; lists leave out what the peer may not read.
    """
    # Words are separated by runs of spaces; a leading space makes an empty command.
    first, *rest = line.split(b" ", 1)
    words = [word for word in rest[0].split(b" ") if word] if rest else []
    name = first.lower()
    command = COMMANDS.get(name)
    connection.command = name.decode() if command else ""
    try:
        answer = command(connection, words) if command else _unknown(first)
    except RequestError as error:
        raise LineError(error.code, str(error), fatal=False) from None
    finally:
        connection.command = ""
    if answer is None:
        return
    if name in AUDITED:
        _record(connection, name.decode(), words, answer)
    if isinstance(answer, LongAnswer):
        connection.answer_in_steps(answer)
    elif name in CHANGES:
        connection.acknowledge(answer, b"ERR QUEUE_ERROR QUEUE_ERROR\r\n")
    else:
        connection.write(answer)


def error_line(code: str, text: str) -> bytes:
    """The answer to a line that is refused."""
    return f"ERR {code} {text.replace(' ', '+')}\r\n".encode()


def _record(connection: "GearmanConnection", name: str, words: list[bytes], answer: bytes | LongAnswer) -> None:
    """Record a command that was carried out, or that failed."""
    if answer == _OK or isinstance(answer, LongAnswer):
        connection.audit(name, words=words)
    else:
        outcome = REFUSED if answer.startswith(b"ERR NOT_ALLOWED") else FAILED
        connection.audit(name, outcome, words, answer.removeprefix(b"ERR ").strip().decode("utf-8", "replace"))


def _unknown(word: bytes) -> bytes:
    return b"ERR UNKNOWN_COMMAND Unknown+server+command%b\r\n" % word


def _incomplete(command: bytes) -> bytes:
    return b"ERR INVALID_ARGUMENTS An+incomplete+set+of+arguments+was+sent+to+this+command+%b\r\n" % command


def _printed(name: bytes) -> bytes:
    """A name for a line: stores of earlier versions may have names with control characters."""
    return escape.escape(name)


def _list(lines: Iterable[bytes]) -> LongAnswer:
    return StreamedAnswer(itertools.chain(lines, [b".\n"]))


def _version(connection: "GearmanConnection", words: list[bytes]) -> bytes:
    return b"OK %b\n" % connection.gearman.options.version.encode()


def _getpid(connection: "GearmanConnection", words: list[bytes]) -> bytes:
    return b"OK %d\n" % os.getpid()


def _verbose(connection: "GearmanConnection", words: list[bytes]) -> bytes:
    return b"OK %b\n" % connection.gearman.control.log_level_name.encode()


def _auth(connection: "GearmanConnection", words: list[bytes]) -> bytes:
    """An addition to gearmand's commands: `auth TOKEN` proves who the peer is, before anything else."""
    if len(words) != 1:
        return _incomplete(b"auth")
    connection.authenticate(words[0].decode("utf-8", "surrogateescape"))
    return _OK


def _functions(connection: "GearmanConnection") -> list[Function]:
    """The functions that the peer may read."""
    connection.engine.require_somewhere(READ)
    functions = connection.engine.functions.values()
    if connection.identity is None:
        return list(functions)
    return [function for function in functions if connection.may_read(function.name)]


def _readable(connection: "GearmanConnection", jobs: Iterable[LiveJob]) -> Iterable[LiveJob]:
    """The jobs that the peer may read."""
    if connection.identity is None:
        return jobs
    connection.engine.require_somewhere(READ)
    return (job for job in jobs if connection.may_read(job.function))


def _status(connection: "GearmanConnection", words: list[bytes]) -> LongAnswer:
    return _list(
        b"%b\t%d\t%d\t%d\n" % (_printed(name), counts.total, counts.running, workers)
        for name, counts, workers in _counted(connection)
    )


def _priority_status(connection: "GearmanConnection", words: list[bytes]) -> LongAnswer:
    return _list(
        b"%b\t%d\t%d\t%d\t%d\n" % (_printed(name), counts.high, counts.normal, counts.low, workers)
        for name, counts, workers in _counted(connection)
    )


def _counted(connection: "GearmanConnection") -> Iterator[tuple[bytes, StatusCounts, int]]:
    """The functions that the peer may read, with their jobs and workers, in a cluster those of all servers."""
    functions = _functions(connection)
    borrowed = borrowed_jobs.by_function(connection.engine)
    others = connection.gearman.others
    elsewhere = others.functions() if others is not None else {}

    def count() -> Iterator[tuple[bytes, StatusCounts, int]]:
        for function in functions:
            name = function.name
            counts = own_counts(function, borrowed.get(name, borrowed_jobs.NONE))
            if others is None:
                yield name, counts, function.workers - function.distant_workers
            else:
                yield name, counts.plus(elsewhere.pop(name, NOTHING)), function.workers
        for name, counts in elsewhere.items():  # that this server has never heard of
            if connection.may_read(name):
                yield name, counts, 0

    return count()


def _workers(connection: "GearmanConnection", words: list[bytes]) -> LongAnswer:
    connection.engine.require_somewhere(READ)
    peers = connection.gearman.gearman_connections()
    own = (worker_line(peer) for peer in peers if not peer.closing)
    others = connection.gearman.others
    elsewhere = others.workers() if others is not None else []
    return _list(_printed_line(connection, line) for line in itertools.chain(own, elsewhere))


def worker_line(peer: "GearmanConnection") -> WorkerLine:
    """A connection as it is listed, with all its functions."""
    abilities = peer.worker.abilities if peer.worker else {}
    address = peer.peer.rpartition(":")[0].encode()
    return WorkerLine(peer.descriptor(), address, peer.client_id, list(reversed(abilities)))


def _printed_line(connection: "GearmanConnection", line: WorkerLine) -> bytes:
    functions = b"".join(b" %b" % _printed(name) for name in line.functions if connection.may_read(name))
    if not functions and connection.identity is not None:
        return b""  # a peer that concerns other functions only
    return b"%d %b %b :%b\n" % (line.descriptor, line.address, _printed(line.client_id) or b"-", functions)


def _show(connection: "GearmanConnection", words: list[bytes]) -> bytes | LongAnswer:
    if not words:
        return _unknown(b"show")
    what = b" ".join(words).lower()
    if what not in LISTS:
        return b"ERR UNKNOWN_SHOW_ARGUMENTS\r\n"
    return _list(LISTS[what](connection))


def _jobs(connection: "GearmanConnection") -> Iterator[bytes]:
    # Retries count lost workers, so the current attempt does not count. The third column, gearmand's ignore flag, is
    # always 0: a foreground job without clients is cancelled at once.
    return (
        b"%b\t%d\t0\t%d\n" % (job.handle, job.attempts - (job.owner is not None), job.background)
        for job in _readable(connection, connection.engine.jobs.walk())
    )


def _unique_jobs(connection: "GearmanConnection") -> Iterator[bytes]:
    jobs = _readable(connection, connection.engine.jobs.walk())
    return (b"%b\n" % _printed(unique.display(job.unique)) for job in jobs)


def _dead_jobs(connection: "GearmanConnection") -> Iterator[bytes]:
    """An addition to gearmand's lists: handle, function, attempts, and the reason."""
    dead = connection.engine.dead
    jobs = (job for number in list(dead) if (job := dead.get(number)) is not None)
    return (
        b"%b\t%b\t%d\t%b\n" % (job.handle, _printed(job.function), job.attempts, _one_line(job.reason))
        for job in _readable(connection, jobs)
    )


def _one_line(text: str) -> bytes:
    return " ".join(text.split()).encode()


def _retry(connection: "GearmanConnection", words: list[bytes]) -> bytes | None:
    """An addition to gearmand's commands: `retry job HANDLE` queues a dead job again."""
    job = _dead_job(connection, words)
    if job is None:
        return _elsewhere(connection, b"retry", words)
    try:
        connection.engine.retry(job)
    except DuplicateKeyError:
        return _UNIQUE_IN_USE
    return _OK


def _delete(connection: "GearmanConnection", words: list[bytes]) -> bytes | None:
    """An addition to gearmand's commands: `delete job HANDLE` deletes a dead job."""
    job = _dead_job(connection, words)
    if job is None:
        return _elsewhere(connection, b"delete", words)
    connection.engine.delete(job)
    return _OK


def _dead_job(connection: "GearmanConnection", words: list[bytes]) -> LiveJob | None:
    job = connection.engine.find_dead(words[1]) if _names_job(words) else None
    if job is not None:
        connection.engine.require(ADMIN, job.function)
    return job


def _names_job(words: list[bytes]) -> bool:
    return len(words) == 2 and words[0].lower() == b"job"


def _cancel(connection: "GearmanConnection", words: list[bytes]) -> bytes | None:
    if len(words) < 2:
        return _unknown(b"cancel")
    if not _names_job(words):
        return b"ERR UNKNOWN_ERROR\r\n"
    job = connection.engine.find(words[1])
    if job is None or job.id in connection.engine.borrowed:
        return _elsewhere(connection, b"cancel", words)
    connection.engine.require(ADMIN, job.function)
    connection.engine.cancel(job)
    return _OK


def _elsewhere(connection: "GearmanConnection", command: bytes, words: list[bytes]) -> bytes | None:
    """Carry out a command on a job that another server may have, and answer when that is durable there."""
    others = connection.tick_loop.others
    if not others.exist or not _names_job(words):
        return _UNKNOWN_JOB
    place = connection.answer_later()

    async def carry_out() -> None:
        line = _UNREACHABLE
        try:
            line = await _carried_out(connection, command, words[1])
        except UnreachableError:
            pass
        except DuplicateKeyError:
            line = _UNIQUE_IN_USE
        except RequestError as error:  # the refusal is recorded
            connection.answer_now(place, error_line(error.code, str(error)))
            return
        finally:
            connection.begin_tick()
        _record(connection, command.decode(), words, line)
        connection.answer_now(place, line)

    others.start(carry_out())
    return None


async def _carried_out(connection: "GearmanConnection", command: bytes, handle: bytes) -> bytes:
    others = connection.tick_loop.others
    job = await others.find(JobName(handle=handle))
    if job is None or job.is_dead != (command in _OF_DEAD_JOBS):
        return _UNKNOWN_JOB
    connection.begin_tick().require(ADMIN, job.function)
    orders: dict[bytes, Callable[[DistantJob], Awaitable[bool]]] = {
        b"cancel": partial(others.cancel, reason="cancelled"),
        b"retry": others.retry,
        b"delete": others.delete,
    }
    return _OK if await orders[command](job) else _UNKNOWN_JOB


def _create(connection: "GearmanConnection", words: list[bytes]) -> bytes:
    if len(words) != 2 or words[0].lower() != b"function":
        return _incomplete(b"create")
    connection.engine.require(ADMIN, words[1])
    connection.engine.function(words[1])
    return _OK


def _drop(connection: "GearmanConnection", words: list[bytes]) -> bytes:
    if len(words) != 2 or words[0].lower() != b"function":
        return _incomplete(b"drop")
    connection.engine.require(ADMIN, words[1])
    if words[1] not in connection.engine.functions:
        return b"ERR function not found\r\n"
    if not connection.engine.drop(words[1]):
        return b"ERR there are still connected workers or executing clients\r\n"
    return _OK


def _maxqueue(connection: "GearmanConnection", words: list[bytes]) -> bytes:
    if not words:
        return _incomplete(b"maxqueue")
    name, *sizes = words
    connection.engine.require(ADMIN, name)
    numbers = [number(size) for size in sizes[:3]]
    if name in connection.engine.functions:
        high, normal, low = numbers * 3 if len(numbers) == 1 else (*numbers, 0, 0, 0)[:3]
        connection.engine.limit(name, high, normal, low)
    return _OK


def _shutdown(connection: "GearmanConnection", words: list[bytes]) -> bytes:
    if not connection.is_local:
        return b"ERR NOT_ALLOWED Shutdown+is+for+admins+on+the+server's+own+machine\r\n"
    graceful = bool(words) and words[0].lower() == b"graceful"
    if words and not graceful:
        return b"ERR INVALID_ARGUMENTS shutdown+takes+the+word+graceful+or+nothing\r\n"
    connection.engine.require_everywhere(ADMIN)
    connection.gearman.control.shutdown(graceful)
    return _OK


LISTS: Final[dict[bytes, Callable[["GearmanConnection"], Iterator[bytes]]]] = {
    b"jobs": _jobs,
    b"unique jobs": _unique_jobs,
    b"dead jobs": _dead_jobs,
}

COMMANDS: Final[dict[bytes, Command]] = {
    b"auth": _auth,
    b"cancel": _cancel,
    b"create": _create,
    b"delete": _delete,
    b"drop": _drop,
    b"getpid": _getpid,
    b"maxqueue": _maxqueue,
    b"prioritystatus": _priority_status,
    b"retry": _retry,
    b"show": _show,
    b"shutdown": _shutdown,
    b"status": _status,
    b"verbose": _verbose,
    b"version": _version,
    b"workers": _workers,
}

# Answered when the change is on disk; the others never wait for it.
CHANGES: Final = frozenset({b"cancel", b"retry", b"delete"})

# What the audit log has entries about.
AUDITED: Final = CHANGES | {b"create", b"drop", b"maxqueue", b"shutdown"}
