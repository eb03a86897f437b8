"""Logs of jobs: extended, bounded, and kept as long as the job and its record."""

import pytest

from geartrain.errors import StoreError
from geartrain.model import JobState
from geartrain.store import contract
from geartrain.store.contract import LOG_BYTES, LOG_LINES, Batch, ResultLimits, Store, extended_log
from tests.contract.stores.backends import FAILING_ID, Backend, WriteFailure
from tests.contract.stores.conftest import Reopen
from tests.contract.stores.factories import NOW, batch, finish, job, prune, record

CUT = b"(earlier lines were removed)\n"


@pytest.fixture
def limits() -> ResultLimits:
    return ResultLimits(logs=300, logs_in_memory=300)


def log(*logs: tuple[int, bytes]) -> Batch:
    made = Batch()
    made.logs = list(logs)
    return made


def kept(store: Store, *ids: int) -> list[bytes]:
    return [store.job_log(id) for id in ids]


def test_lines_are_added_in_order(store: Store, reopened: Reopen) -> None:
    assert log((1, b"a\n"))
    store.commit(log((1, b"one\n"), (2, b"other\n"), (1, b"two\n")))
    store.commit(log((1, b"three \xff\n")))
    expected = [b"one\ntwo\nthree \xff\n", b"other\n", b""]
    assert kept(store, 1, 2, 3) == expected
    if store.durable:
        assert kept(reopened(), 1, 2, 3) == expected


def test_log_outlives_the_end_of_its_job_and_goes_with_the_record(store: Store) -> None:
    for id in (1, 2):
        store.commit(batch([job(id)]))
        store.commit(log((id, b"line\n")))
        finish(store, id)
    assert kept(store, 1, 2) == [b"line\n", b"line\n"]
    assert prune(store, NOW, 1) == 1
    assert kept(store, 1, 2) == [b"", b"line\n"]


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.DONE])
def test_log_goes_with_a_record_that_is_removed(store: Store, state: JobState) -> None:
    finish(store, 1, 2, state=int(state))
    store.commit(log((1, b"line\n"), (2, b"line\n")))
    removal = Batch()
    removal.removed_records = [1]
    store.commit(removal)
    assert kept(store, 1, 2) == [b"", b"line\n"]


def test_log_of_failed_records_that_are_pruned(store: Store) -> None:
    finish(store, 1, 2, state=int(JobState.FAILED))
    store.commit(log((1, b"line\n"), (2, b"line\n")))
    assert prune(store, NOW, 1) == 1
    assert kept(store, 1, 2) == [b"", b"line\n"]


@pytest.mark.parametrize("unique", [b"", b"key"])
def test_job_that_is_retried_keeps_its_log(store: Store, unique: bytes) -> None:
    finish(store, 1, state=int(JobState.FAILED))
    store.commit(log((1, b"first\n")))
    retry = Batch()
    retry.removed_records = [1]
    retry.revived = [contract.row(job(1, unique=unique))]
    store.commit(retry)
    store.commit(log((1, b"second\n")))
    assert kept(store, 1) == [b"first\nsecond\n"]


def test_oldest_logs_are_removed_when_the_total_is_exceeded(store: Store, reopened: Reopen) -> None:
    line = bytes([120] * 99) + b"\n"
    for id in (1, 2, 3):
        store.commit(log((id, line)))
    assert kept(store, 1, 2, 3) == [line] * 3
    if store.durable:
        store = reopened()  # which counts again
    store.commit(log((4, line)))
    assert kept(store, 1, 2, 3, 4) == [b"", line, line, line]
    store.commit(log((4, line)))
    assert kept(store, 2, 3, 4) == [b"", line, line + line]


def test_removed_logs_leave_space(store: Store) -> None:
    line = bytes([120] * 99) + b"\n"
    finish(store, 1, 2, 3)
    store.commit(log(*[(id, line) for id in (1, 2, 3)]))
    assert prune(store, NOW, 1) == 2
    store.commit(log((4, line), (5, line)))
    assert kept(store, 3, 4, 5) == [line] * 3


def test_batch_that_fails_adds_nothing_and_can_be_repeated(
    backend: Backend, store: Store, write_failure: WriteFailure
) -> None:
    store.commit(log((1, b"one\n")))
    both = batch(finished=[record(FAILING_ID)])
    both.logs = [(1, b"two\n")]
    with write_failure(), pytest.raises(StoreError):
        store.commit(both)
    assert kept(store, 1) == [b"one\n"]
    store.commit(both)
    assert kept(store, 1) == [b"one\ntwo\n"]


def test_batches_are_joined_in_order() -> None:
    first, later = log((1, b"one\n"), (2, b"gone\n")), log((1, b"two\n"))
    first.rejoin(later, {2})
    assert later.logs == [(1, b"one\n"), (1, b"two\n")]
    assert later.size == 2


def test_end_of_a_long_log_is_kept_in_whole_lines() -> None:
    lines = [b"line %d\n" % number for number in range(20_000)]
    whole = extended_log(b"".join(lines[:-1]), lines[-1])
    assert len(whole) <= LOG_BYTES
    assert whole.count(b"\n") <= LOG_LINES + 1
    head, _, rest = whole.partition(b"\n")
    assert head + b"\n" == CUT
    assert rest == b"".join(lines[-rest.count(b"\n") :])
    again = extended_log(whole, b"last\n")
    assert again.startswith(CUT)
    assert again.count(CUT) == 1
    assert again.endswith(lines[-1] + b"last\n")


@pytest.mark.parametrize("added", [b"x" * (LOG_BYTES + 1), b"\n" * (LOG_LINES + 5), b"x" * LOG_BYTES + b"\nlast\n"])
def test_no_input_makes_a_log_too_long(added: bytes) -> None:
    kept = extended_log(b"first\n", added)
    assert len(kept) <= LOG_BYTES
    assert kept.count(b"\n") <= LOG_LINES + 1
    assert kept.startswith(CUT)
