"""After a fault: every job that was acknowledged is done, or there exactly once; and nobody has invented one."""

import contextlib
import functools
import itertools
from collections import Counter
from collections.abc import Callable

import psycopg

from tests.chaos.calendar import Calendar
from tests.chaos.load import KEYED, Ledger
from tests.chaos.members import Fleet, Member
from tests.crash.load import FUNCTION, NEVER_SOON, Job
from tests.support.gearman_peer import Kind, Peer
from tests.support.waiting import PATIENCE, wait_for

_GONE = (OSError, AssertionError)  # what a peer raises when its server is not there, or closes the connection
_serial = itertools.count(1)


class Books:
    """What the clients and workers of a run know."""

    def __init__(self, fleet: Fleet, loses_keys: bool = False, calendar: Calendar | None = None) -> None:
        self.fleet = fleet
        self._loses_keys = loses_keys
        self._calendar = calendar
        self.ledger = Ledger()
        self.account = self.ledger.account
        self.keys = self.ledger.keys
        self._older: set[bytes] = set()  # payloads of jobs of earlier rounds

    def promised(self) -> set[bytes]:
        """The handles of jobs that have to be there."""
        return {job.handle for job in self.account.jobs.values() if job.promised} | self.keys.promised

    def check(self, when: str, patience: float = PATIENCE) -> None:
        """Wait until all that was acknowledged is there, and nothing else. Nobody submits or works meanwhile."""
        self.commit()  # so that a server that was fenced knows it
        self.wait_until_whole(when)
        _wait_for_none(self._strangers, when, 0.0 if self._calendar is None else PATIENCE)
        _wait_for_none(self._unmade_attempts, when, patience)
        if self._calendar is not None:
            self._calendar.check(when)
        problems = self.keys.twice(self._times_fenced(), self._loses_keys) + self.account.problems + self.keys.problems
        assert not problems, f"{when}: {problems[:10]}"

    def wait_until_whole(self, when: str, patience: float = PATIENCE) -> None:
        """All that was acknowledged is there, once; it may take a takeover until it is so."""
        _wait_for_none(self.difference, when, patience)

    def _strangers(self) -> str:
        """Whether there are jobs that nobody has submitted, in words. Runs of a schedule are known when committed."""
        present = self._present()
        known = self.account.handles.keys() | self.keys.acknowledged | self.keys.ended
        try:
            scheduled = self._calendar.handles() if self._calendar is not None else set()
        except psycopg.Error as error:  # it may be restarting
            return str(error)
        strangers = len(present.keys() - known - scheduled)
        unanswered = sum(not job.handle for job in self.account.jobs.values()) + self.keys.unanswered
        if strangers <= unanswered:
            return ""
        return f"{strangers} jobs are new, but only {unanswered} were never answered"

    def difference(self) -> str:
        """What is not as it has to be, in words."""
        present = self._present()
        promised = self.promised()
        missing = promised - present.keys()
        twice = [handle for handle, count in present.items() if count > 1]
        said = (
            [f"{len(missing)} of {len(promised)} are not there: {self.fleet.whereabouts(missing)}"] if missing else []
        )
        said += [f"{len(twice)} are there twice, such as {sorted(twice)[:3]}"] if twice else []
        return "; ".join(said)

    def _unmade_attempts(self) -> str:
        """Attempts that are counted and were not made, in words, except those of which a worker may not have heard.

        This is about jobs of this round: one whose end was lost may have had such attempts in earlier ones. A job that
        waits for a worker at another server counts as running, until it goes back.
        """
        more = {}
        for member in self.fleet.alive:
            for handle, attempts in (member.attempts() or {}).items():
                job = self.account.handles.get(handle)
                if job is not None and job.payload not in self._older and attempts > job.given:
                    more[handle] = (attempts, job.given)
        surplus = sum(attempts - made for attempts, made in more.values())
        if surplus <= self.ledger.unread:
            return ""
        return (
            f"{surplus} attempts were counted that were not made, and only {self.ledger.unread} may not have "
            f"been read; (counted, made) of some jobs: {dict(itertools.islice(more.items(), 5))}"
        )

    def drain(self, when: str) -> None:
        """Take every job that is due from every server: each comes once, and afterwards none is owed."""
        given: Counter[bytes] = Counter()
        before = self._times_fenced()

        def is_drained() -> bool:
            taken = [self._take_all(member, given) for member in self.fleet.alive]
            return all(taken) and not self._owed()

        # A server assigns nothing until it has renewed its lease, nor a job whose key it has not reserved yet.
        wait_for(is_drained, f"{when}: every job is assigned")
        self.commit()

        # The end of a job that ran elsewhere waits at that server until somebody has taken over from a home that died.
        # One whose end was lost with its home runs again, so workers go on meanwhile.
        def left_ends() -> str:
            for member in self.fleet.alive:
                self._take_all(member, given)
            return self.unstored_ends()

        _wait_for_none(left_ends, when)
        twice = [handle for handle, count in given.items() if count > 1]
        # On a busy machine a server may be taken for dead at any time, with the ends that it has not stored yet.
        if self._times_fenced() == before:
            assert not twice, f"{len(twice)} jobs came twice, such as {twice[:3]}"
            self.account.forget_ended()
        self._older |= {job.payload for job in self.account.handles.values()} | self.account.jobs.keys()
        self.ledger.unread = 0
        assert not self.account.problems, self.account.problems[:10]

    def _take_all(self, member: Member, given: Counter[bytes]) -> bool:
        """Whether the server has answered until it had no more."""
        with contextlib.suppress(*_GONE), Peer(member.port).register(FUNCTION, KEYED) as worker:
            while (assignment := worker.take(Kind.GRAB_JOB_UNIQ)) is not None:
                given[assignment.handle] += 1
                self._end(assignment.function, assignment.data, assignment.handle)
                worker.send(Kind.WORK_COMPLETE, assignment.handle, b"")
            worker.silence()
            return True
        self.ledger.unread += 1
        return False

    def unstored_ends(self) -> str:
        """The jobs in the database that a worker has ended, and what the servers say of them, in words."""
        # By the handles that workers were given: one whose submission was never answered can be ended, too.
        ended = {handle for handle, job in self.account.handles.items() if job.ended}
        try:
            left = ended & self.fleet.stored()
        except psycopg.Error as error:  # it may be restarting
            return str(error)
        said = [f"{member.name}: {line!r}" for member in self.fleet.alive for line in member.listing(left)]
        return f"{len(left)} that have ended are in the database, such as {sorted(left)[:3]}; {said}" if left else ""

    def _owed(self) -> set[bytes]:
        """Jobs that a worker has to be given; those for a time in years are not due."""
        plain = {job.handle for job in self.account.jobs.values() if job.promised and not job.scheduled}
        return plain | self.keys.promised

    def commit(self) -> None:
        """Wait until what the servers know is in PostgreSQL: ends of jobs are not acknowledged, but one more job is."""
        for member in self.fleet.alive:
            wait_for(functools.partial(self._submit, member), f"{member.name} acknowledges a job")

    def _submit(self, member: Member) -> bool:
        """Whether one more job, which is due in many years, was acknowledged."""
        job = Job(b"last.%d" % next(_serial), Kind.SUBMIT_JOB_EPOCH, b"")
        self.account.add(job)
        with contextlib.suppress(*_GONE), Peer(member.port) as peer:
            peer.send(Kind.SUBMIT_JOB_EPOCH, FUNCTION, b"", b"%d" % NEVER_SOON, job.payload)
            self.account.acknowledge(job, peer.body(Kind.JOB_CREATED))
            return True
        return False

    def _times_fenced(self) -> dict[str, int]:
        return {member.name: member.times_fenced for member in self.fleet.alive}

    def _end(self, function: bytes, payload: bytes, handle: bytes) -> None:
        if function == KEYED:
            self.keys.ended.add(handle)
        elif (job := self.account.give(payload, handle)) is not None:
            job.ended = True

    def _present(self) -> Counter[bytes]:
        """How many servers have each job; nothing while one does not answer."""
        found: Counter[bytes] = Counter()
        for member in self.fleet.alive:
            listed = member.jobs()
            if listed is None:
                return Counter()
            found.update(listed)
        return found

    def summary(self) -> str:
        """How much of all that there was, for the person who reads the output."""
        plain = sum(1 for _ in self.account.handles)
        crossed = self.ledger.crossings.count
        return f"{plain} jobs without a key so far, {len(self.keys.acknowledged)} with one; {crossed} ran elsewhere"


def _wait_for_none(problem: Callable[[], str], when: str, patience: float = PATIENCE) -> None:
    """Return when there is no problem; the last one is the failure."""
    said = ""

    def is_solved() -> bool:
        nonlocal said
        said = problem()
        return not said

    try:
        wait_for(is_solved, when, patience)
    except AssertionError:
        raise AssertionError(f"{when}: {said}") from None
