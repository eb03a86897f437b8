"""The book of jobs with unique keys: a key never runs twice at a time.

An attempt begins when a worker gets the job and ends when the worker sends its end. Two attempts at a time are allowed
only where the server that assigned the first had a fault meanwhile, or says that others took it for dead: then its job
was taken over, which is what "at least once" means.
"""

import threading
from typing import NamedTuple

from tests.chaos.members import Member


class Attempt(NamedTuple):
    """A worker has the job."""

    member: Member
    faults: int  # that its server had before
    handle: bytes


class Overlap(NamedTuple):
    """A key ran twice at a time."""

    key: bytes
    first: Attempt
    second: Attempt

    def is_excused(self, fenced: dict[str, int]) -> bool:
        """Whether the first one's server was taken for dead, as far as is known at the end of a round."""
        member = self.first.member
        return member.faults > self.first.faults or fenced.get(member.name, 0) > 0


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

    def twice(self, fenced: dict[str, int]) -> list[str]:
        """What ran twice at a time without an excuse, since the last time."""
        with self._lock:
            overlaps, self._overlaps = self._overlaps, []
        return [
            f"{overlap.key!r} ran as {overlap.first.handle!r} on {overlap.first.member.name} and at the same time as "
            f"{overlap.second.handle!r} on {overlap.second.member.name}"
            for overlap in overlaps
            if not overlap.is_excused(fenced)
        ]
