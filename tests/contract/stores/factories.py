"""Jobs, records and batches for the tests of stores."""

from collections.abc import Iterable
from typing import Any

from geartrain.model import Job, JobState, Record
from geartrain.store import contract
from geartrain.store.contract import Batch, Quota, Retention, Store

NOW = 1_800_000_000.0


def job(id: int, **changes: Any) -> Job:
    """A background job as the engine would have it, with some of it changed."""
    made = Job(id, b"H:host:%d" % id, b"reverse", b"", b"payload %d" % id, 1, True, NOW, NOW, "gearman")
    for name, value in changes.items():
        assert hasattr(made, name)
        setattr(made, name, value)
    return made


def record(id: int, **changes: Any) -> Record:
    """What is kept of the job with this id; those with higher ids finished later."""
    done = Record(
        id=id, handle=b"H:host:%d" % id, function=b"reverse", unique=b"", priority=1, state=int(JobState.DONE),
        submitted_at=NOW, started_at=NOW + 1, finished_at=NOW + id, attempts=1, door="gearman",
        worker_door="gearman", worker=b"worker", code=0, reason="", result=b"result %d" % id,
    )  # fmt: skip
    return done._replace(**changes)


def batch(saved: Iterable[Job] = (), finished: Iterable[Record] = (), ids_until: int = 0, **kept: bytes) -> Batch:
    made = Batch()
    made.saved_values = kept
    made.changed = [contract.row(job) for job in saved]
    made.finished = list(finished)
    made.ids_until = ids_until
    return made


def accepted(*jobs: Job) -> Batch:
    """A batch with new jobs and nothing else, as the server makes it."""
    made = Batch()
    made.accepted = [contract.new_row(job) for job in jobs]
    return made


def facts(job: Job) -> tuple[object, ...]:
    """All that is in a job. The stores' own row says the same, but would hide what it leaves out."""
    return (
        job.id, job.handle, job.function, job.unique, job.payload, job.priority, job.state, job.run_at,
        job.submitted_at, job.attempts, job.count, job.timeout, job.reducer, job.door, job.reason, job.background,
        job.failed_attempts, job.keeps_result, job.keep_for, job.expires_at, job.user,
        job.partition, job.after,
    )  # fmt: skip


def rows(store: Store) -> list[tuple[object, ...]]:
    """Every job of a store, so that it can be compared."""
    return [facts(job) for job in store.jobs(Job)]


def ids(store: Store) -> list[int]:
    return [job.id for job in store.jobs(Job)]


def records(store: Store, **query: Any) -> list[int]:
    """The ids of the records that a query gives."""
    return [found.id for found in store.records(contract.Query(**query))]


def finish(store: Store, *ids: int, **changes: Any) -> None:
    """Leave a record of each of these jobs, one batch each."""
    for id in ids:
        store.commit(batch(finished=[record(id, **changes)]))


def prune(store: Store, before: float, keep: int) -> int:
    """Remove some records of every kind that finished before a time, or exceed this number of their kind."""
    quota = Quota(0.0, keep)
    return store.prune(before, Retention(done=quota, failed=quota))
