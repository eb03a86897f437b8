"""The account of a soak notices what must not happen."""

import json
from collections import Counter
from typing import Any

import pytest

from campaigns.soak.account import Account, Answer, StoredJob, Submission, stored_jobs, verify
from campaigns.soak.job import FUNCTION, POISON, SoakJob

ACKNOWLEDGED = Submission("http", Answer.ACKNOWLEDGED, 1, FUNCTION)


def stored(id: int = 1, state: str = "done", *keys: str, function: str = FUNCTION) -> StoredJob:
    return StoredJob(id, state, function, frozenset(keys))


def account(submission: Submission = ACKNOWLEDGED, key: str = "http-1") -> Account:
    made = Account()
    made.background(key, submission)
    return made


def problems(made: Account, jobs: list[StoredJob], **ran: int) -> list[str]:
    return verify(made, jobs, Counter({key.replace("_", "-"): runs for key, runs in ran.items()})).problems


def test_done_job_is_accounted_for() -> None:
    verdict = verify(account(), [stored(1, "done", "http-1")], Counter({"http-1": 3}))
    assert verdict.problems == []
    assert verdict.states == {"done": 1}
    assert verdict.duplicates == 2


@pytest.mark.parametrize("state", ["waiting", "dead", "failed"])
def test_job_in_another_state_is_accounted_for(state: str) -> None:
    assert problems(account(), [stored(1, state)]) == []


def test_job_that_is_not_in_the_store_is_lost() -> None:
    (problem,) = problems(account(), [])
    assert problem.startswith("LOST: http-1")
    (problem,) = problems(account(), [], http_1=1)
    assert problem.endswith("it ran 1 times")


def test_job_without_an_id_is_found_by_its_key() -> None:
    made = account(ACKNOWLEDGED._replace(id=0))
    assert problems(made, [stored(7, "done", "http-1")], http_1=1) == []
    assert problems(made, [stored(7, "done", "http-2")])[0].startswith("LOST")


@pytest.mark.parametrize("answer", [Answer.REFUSED, Answer.UNCERTAIN])
def test_job_that_was_not_acknowledged_may_be_there_or_not(answer: Answer) -> None:
    made = account(Submission("http", answer))
    assert problems(made, []) == []
    assert problems(made, [stored(1, "done", "http-1")], http_1=2) == []


def test_job_is_in_the_store_once() -> None:
    assert problems(account(), [stored(1, "done"), stored(1, "waiting")], http_1=1) == [
        "job 1 is in the store 2 times"
    ]  # fmt: skip


def test_unfinished_copies_are_a_problem() -> None:
    (problem,) = problems(account(), [stored(1, "waiting", "http-1"), stored(2, "waiting", "http-1")])
    assert problem == "http-1 is in the store as 2 unfinished jobs"


def test_copy_of_an_earlier_attempt_to_submit_is_no_problem() -> None:
    jobs = [stored(1, "done", "http-1"), stored(2, "done", "http-1")]
    verdict = verify(account(ACKNOWLEDGED._replace(id=2)), jobs, Counter({"http-1": 2}))
    assert verdict.problems == []
    assert verdict.resubmitted == 1


def test_done_job_that_nobody_ran_is_a_problem() -> None:
    assert problems(account(), [stored()]) == ["http-1 is done, and no worker ran it"]


def test_job_that_nobody_submitted_is_a_problem() -> None:
    assert problems(Account(), [], http_9=1) == ["http-9 was never submitted"]
    assert problems(Account(), [stored(1, "waiting", "http-9")]) == ["http-9 was never submitted"]
    assert problems(Account(), [], foreground_http_9=1) == []


def test_jobs_of_other_functions_do_not_count() -> None:
    assert problems(Account(), [stored(1, "waiting", "key", function="reverse")]) == []


def test_poison_is_dead() -> None:
    made = account(ACKNOWLEDGED._replace(function=POISON))
    assert problems(made, [stored(1, "dead", function=POISON)]) == []
    assert len(problems(made, [stored(1, "waiting", function=POISON)])) == 1


def test_wrong_result_is_a_problem() -> None:
    made = Account()
    made.result("memodb", "foreground-1", b"foreground-1")
    made.result("memodb", "foreground-2", b"another")
    assert problems(made, []) == ["memodb: the result of foreground-2 is b'another'"]


def test_dump_is_read() -> None:
    job: dict[str, Any] = {"geartrain": "job", "id": 5, "state": "waiting", "function": "soak", "unique": ""}
    record = {"geartrain": "record", "id": 6, "state": "done", "function": "soak", "unique": "u", "result": "http-2"}
    failed = {**record, "id": 7, "state": "failed", "result": "RuntimeError"}
    header = {"geartrain": "dump", "version": 3}
    lines = [header, {**job, "payload": SoakJob("http-1", 3).payload.decode()}, record, failed]
    assert stored_jobs(json.dumps(line) for line in lines) == [
        stored(5, "waiting", "http-1"),
        stored(6, "done", "u", "http-2"),
        stored(7, "failed", "u"),
    ]
