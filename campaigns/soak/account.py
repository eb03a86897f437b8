"""The account of all jobs, from three sources: acknowledgements, the logs of the workers, and the store."""

import enum
import json
import threading
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from campaigns.soak.job import FOREGROUND, FUNCTION, POISON, SoakJob

MOST_SHOWN = 10  # problems of a kind


class Answer(enum.StrEnum):
    """What a client heard about a background job."""

    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"
    UNCERTAIN = "uncertain"  # the connection ended first


class Submission(NamedTuple):
    """A background job, and what was heard of it."""

    source: str  # the client that submitted it
    answer: Answer
    id: int = 0  # the number at the end of its handle; 0 where the client was told none
    function: str = ""


class StoredJob(NamedTuple):
    """A job or a record of a dump."""

    id: int
    state: str
    function: str
    keys: frozenset[str]  # of the payload, the unique key and the result, as far as they are there


class Account:
    """What was submitted. Threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.submissions: dict[str, Submission] = {}  # by key
        self.foreground: Counter[str] = Counter()  # results by source
        self.errors: Counter[str] = Counter()  # of all clients, by class
        self.problems: list[str] = []

    def background(self, key: str, submission: Submission) -> None:
        with self._lock:
            self.submissions[key] = submission

    def result(self, source: str, key: str, result: bytes) -> None:
        """A foreground job has ended."""
        with self._lock:
            self.foreground[source] += 1
            if result != key.encode():
                self.problems.append(f"{source}: the result of {key} is {result[:80]!r}")

    def error(self, error: BaseException) -> None:
        with self._lock:
            self.errors[type(error).__name__] += 1

    @property
    def acknowledged(self) -> int:
        with self._lock:
            return sum(each.answer is Answer.ACKNOWLEDGED for each in self.submissions.values())

    def count(self, source: str, answer: Answer) -> int:
        return sum(each.source == source and each.answer is answer for each in self.submissions.values())

    @property
    def sources(self) -> list[str]:
        return sorted({each.source for each in self.submissions.values()} | self.foreground.keys())


def stored_jobs(lines: Iterable[str]) -> list[StoredJob]:
    """The jobs and records of a dump."""
    objects = [json.loads(line) for line in lines]
    return [_stored_job(entry) for entry in objects if entry["geartrain"] in ("job", "record")]


def _stored_job(entry: dict[str, Any]) -> StoredJob:
    keys = {str(entry["unique"])}
    if entry["state"] == "done":
        keys.add(str(entry["result"]))
    payload = entry.get("payload", "")
    if isinstance(payload, str) and payload.count(" ") >= 3:
        keys.add(SoakJob.parse(payload.encode()).key)
    return StoredJob(entry["id"], entry["state"], str(entry["function"]), frozenset(keys - {""}))


class Verdict(NamedTuple):
    """What became of all acknowledged jobs."""

    states: Counter[str]  # in the store
    duplicates: int  # runs of a job beyond its first
    resubmitted: int  # acknowledged jobs of which the store has an earlier one that was not acknowledged
    problems: list[str]


def verify(account: Account, stored: list[StoredJob], ran: Counter[str]) -> Verdict:
    """Compare the three sources. Jobs of other functions, such as those of the control function, do not count."""
    stored = [job for job in stored if job.function in (FUNCTION, POISON)]
    problems = list(account.problems)
    by_id = Counter(job.id for job in stored)
    problems += [f"job {id} is in the store {count} times" for id, count in by_id.items() if count > 1]
    by_key: dict[str, list[StoredJob]] = {}
    for job in stored:
        for key in job.keys:
            by_key.setdefault(key, []).append(job)
    jobs = {job.id: job for job in stored}
    states: Counter[str] = Counter()
    resubmitted = 0
    for key, submission in account.submissions.items():
        if submission.answer is not Answer.ACKNOWLEDGED:
            continue
        named = by_key.get(key, [])
        entry = jobs.get(submission.id) if submission.id else next(iter(named), None)
        if entry is None:
            problems.append(f"LOST: {key} ({submission}) is not in the store; it ran {ran[key]} times")
            continue
        states[entry.state] += 1
        resubmitted += len(named) > 1
        problems += _contradictions(key, submission, entry, named, ran[key])
    strangers = (ran.keys() | by_key.keys()) - account.submissions.keys()
    problems += [f"{key} was never submitted" for key in sorted(strangers) if not key.startswith(FOREGROUND)]
    return Verdict(states, sum(ran.values()) - len(ran), resubmitted, problems)


def _contradictions(
    key: str, submission: Submission, job: StoredJob, named: list[StoredJob], runs: int
) -> Iterable[str]:
    if job.state == "done" and not runs:
        yield f"{key} is done, and no worker ran it"
    if job.state == "cancelled":
        yield f"{key} was cancelled, and nobody asked for that"
    if submission.function == POISON and (job.state != "dead" or runs):
        yield f"{key} is poison; it is {job.state} and ran {runs} times"
    if sum(other.state in ("waiting", "dead") for other in named) > 1:
        yield f"{key} is in the store as {len(named)} unfinished jobs"
