"""The book of jobs with unique keys: a key never runs twice at a time.

An attempt begins when a worker gets the job and ends when the worker sends its end. Two attempts at a time are allowed
only where the server that assigned the first, or the home of its job, had a fault meanwhile, or says that others took
it for dead: then the job was taken over or given to another server, which is what "at least once" means.
"""

import threading
from typing import NamedTuple, Self

from tests.chaos.members import Member


class Attempt(NamedTuple):
    """A worker has the job."""

    handle: bytes
    member: Member
    faults: int  # that its server had before
    home: Member  # of the job, which may be another server
    home_faults: int

    @classmethod
    def at(cls, handle: bytes, member: Member, home: Member | None = None) -> Self:
        """A worker of this server was given the job; the server is its home, unless told."""
        home = member if home is None else home
        return cls(handle, member, member.faults, home, home.faults)

    def had_fault(self, fenced: dict[str, int]) -> bool:
        """Whether one of its servers had a fault since then, or was taken for dead."""
        servers = ((self.member, self.faults), (self.home, self.home_faults))
        return any(member.faults > faults or fenced.get(member.name, 0) > 0 for member, faults in servers)


class Overlap(NamedTuple):
    """A key ran twice at a time."""

    key: bytes
    first: Attempt
    second: Attempt

    def is_excused(self, fenced: dict[str, int]) -> bool:
        """Whether one of the first one's servers was taken for dead, as far as is known at the end of a round."""
        return self.first.had_fault(fenced)


class KeyBook:
    """All submissions with a key. Threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._submitted: set[bytes] = set()  # payloads
        self._running: dict[bytes, list[Attempt]] = {}  # by key
        self._overlaps: list[Overlap] = []
        self.unanswered = 0  # submissions that were sent and not acknowledged
        self.acknowledged: set[bytes] = set()  # handles; several submissions may have been given the same
        self.ended: set[bytes] = set()  # handles whose end a worker has sent
        self.problems: list[str] = []

    @property
    def promised(self) -> set[bytes]:
        """Jobs that have to be there."""
        with self._lock:
            return self.acknowledged - self.ended

    def submit(self, payload: bytes) -> None:
        with self._lock:
            self._submitted.add(payload)
            self.unanswered += 1

    def acknowledge(self, handle: bytes) -> None:
        with self._lock:
            self.unanswered -= 1
            self.acknowledged.add(handle)

    def begin(self, key: bytes, payload: bytes, attempt: Attempt) -> None:
        """A worker was given the job."""
        with self._lock:
            if payload not in self._submitted:
                self.problems.append(f"a worker was given {payload!r}, which nobody submitted")
            running = self._running.setdefault(key, [])
            self._overlaps += [Overlap(key, other, attempt) for other in running]
            running.append(attempt)

    def end(self, key: bytes, attempt: Attempt) -> None:
        """The worker sends the end of the job next."""
        with self._lock:
            self._running[key].remove(attempt)
            self.ended.add(attempt.handle)

    def drop(self, key: bytes, attempt: Attempt) -> None:
        """The worker has lost its connection, and with it the job."""
        with self._lock:
            self._running[key].remove(attempt)

    def twice(self, fenced: dict[str, int], loses_keys: bool = False) -> list[str]:
        """What ran twice at a time without an excuse, since the last time.

        With a database that has lost keys, two jobs may have the same one; each of them still runs once at a time.
        """
        with self._lock:
            overlaps, self._overlaps = self._overlaps, []
        return [
            f"{overlap.key!r} ran as {overlap.first.handle!r} on {overlap.first.member.name} and at the same time as "
            f"{overlap.second.handle!r} on {overlap.second.member.name}"
            for overlap in overlaps
            if not overlap.is_excused(fenced) and not (loses_keys and overlap.first.handle != overlap.second.handle)
        ]
