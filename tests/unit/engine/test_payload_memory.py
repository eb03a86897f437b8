"""Which jobs are cold, what is read ahead, and what a claim does meanwhile."""

import pytest

from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import PayloadReader
from geartrain.engine.job import LiveJob
from geartrain.engine.payload_memory import GONE, NEAR, READ_BYTES, READ_JOBS, WARM_BYTES
from geartrain.engine.policy import JOB_BYTES, Policy
from geartrain.engine.queue import JobQueue
from geartrain.engine.workflow_verbs import MemberJob
from geartrain.errors import ColdJobError
from geartrain.model import JobState
from tests.unit.engine.recording import NOW, RecordingJournal, RecordingWorker

MANY = NEAR + 50


class RecordingReader(PayloadReader):
    """Notes what it is to read, and answers when the test says so."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.asked: list[tuple[JobQueue, list[LiveJob]]] = []

    def read(self, queue: JobQueue, jobs: list[LiveJob]) -> None:
        self.asked.append((queue, jobs))

    def ids(self) -> list[int]:
        """The jobs of the only read that was asked for."""
        ((_, jobs),) = self.asked
        return [job.id for job in jobs]

    def answer(self, payload: bytes | None = b"payload") -> list[LiveJob]:
        """Answer the first one."""
        queue, jobs = self.asked.pop(0)
        return self.engine.payloads.arrived(queue, jobs, [payload] * len(jobs))


@pytest.fixture
def reader(engine: Engine) -> RecordingReader:
    """Of an engine in which no payload has room."""
    reader = engine.payloads.reader = RecordingReader(engine)
    engine.payloads.budget = 1
    return reader


@pytest.fixture
def worker(engine: Engine) -> RecordingWorker:
    worker = RecordingWorker()
    engine.register(worker, b"f")
    return worker


def submit(engine: Engine, count: int = 1, name: bytes = b"f", **options: object) -> list[LiveJob]:
    """So many background jobs, which are durable at once."""
    jobs = [engine.submit(name, b"", b"payload", 1, True, **options) for _ in range(count)]  # type: ignore[arg-type]
    engine.payloads.committed(jobs)
    return jobs


def test_a_job_becomes_cold_when_it_is_durable(engine: Engine, reader: RecordingReader) -> None:
    job = engine.submit(b"f", b"", b"payload", 1, True)
    assert not job.is_cold
    engine.payloads.committed([job])
    assert (job.is_cold, job.payload_in_memory, job.payload_size, job.handle) == (True, None, 7, b"H:localhost:1")
    assert (engine.payloads.cold_jobs, engine.payloads.cold_bytes, engine.payloads.warm_bytes) == (1, 7, 0)
    assert engine.queued_bytes == JOB_BYTES
    with pytest.raises(ColdJobError, match="payload of job 1 is on disk"):
        assert job.payload


def test_without_a_reader_all_payloads_stay(engine: Engine) -> None:
    assert not any(job.is_cold for job in submit(engine, MANY))


def test_what_has_room_stays_warm(engine: Engine, reader: RecordingReader) -> None:
    """Three quarters of the budget are for jobs that are far from their turn."""
    engine.payloads.budget = 400 * (7 + WARM_BYTES)
    jobs = submit(engine, 399)
    assert [job.is_cold for job in jobs] == [True] * 99 + [False] * 300


def test_jobs_near_the_head_stay_warm_while_the_budget_is_not_exceeded(engine: Engine, reader: RecordingReader) -> None:
    each = 7 + WARM_BYTES
    engine.payloads.budget = 4 * NEAR * each
    submit(engine, 3 * NEAR + 1, b"long")
    few = submit(engine, NEAR, b"short")
    assert not any(job.is_cold for job in few)
    (more,) = submit(engine, 1, b"short")
    assert more.is_cold
    others = submit(engine, 10, b"other")
    assert any(job.is_cold for job in others), "the budget is exceeded"


def test_a_job_that_waits_for_its_time_or_for_others_becomes_cold(engine: Engine, reader: RecordingReader) -> None:
    (later,) = submit(engine, run_at=NOW + 10)
    assert later.is_cold
    engine.run_now(later)
    assert (later.state, engine.functions[b"f"].queues[1].cold) == (JobState.QUEUED, 1)


def test_foreground_jobs_and_running_ones_stay_warm(
    engine: Engine, reader: RecordingReader, worker: RecordingWorker
) -> None:
    foreground = engine.submit(b"f", b"", b"payload")
    engine.claim(worker)
    running = engine.submit(b"f", b"", b"payload", 1, True)
    engine.claim(worker)
    waiting = engine.submit(b"f", b"", b"payload")
    engine.payloads.committed([foreground, running, waiting])
    assert not any(job.is_cold for job in (foreground, running, waiting))


def test_a_job_that_was_replaced_or_has_ended_does_not_become_cold(engine: Engine, reader: RecordingReader) -> None:
    job = engine.submit(b"f", b"", b"payload", 1, True)
    engine.cancel(job)
    engine.payloads.committed([job])
    assert engine.payloads.cold_jobs == 0


def test_a_claim_leaves_out_a_queue_until_its_payload_is_read(
    engine: Engine, reader: RecordingReader, worker: RecordingWorker
) -> None:
    engine.register(worker, b"g")
    (cold,) = submit(engine)
    assert engine.claim(worker) is None
    assert reader.ids() == [cold.id]
    other = engine.submit(b"g", b"", b"other")
    assert engine.claim(worker) is other, "other functions go on"
    assert engine.claim(worker) is None
    assert len(reader.asked) == 1, "it is not read twice"
    assert worker.crew is not None
    assert worker.crew.waits_for_payload
    reader.answer()
    assert not worker.crew.waits_for_payload
    assert engine.claim(worker) is cold
    assert (cold.payload, cold.handle) == (b"payload", b"H:localhost:1")


def test_a_claim_of_one_queue_waits_too(engine: Engine, reader: RecordingReader, worker: RecordingWorker) -> None:
    (cold,) = submit(engine)
    assert engine.claim_from(worker, b"f", 1) is None
    reader.answer()
    assert engine.claim_from(worker, b"f", 1) is cold


def test_a_scheduled_job_that_is_claimed_before_its_time_is_read_first(
    engine: Engine, reader: RecordingReader, worker: RecordingWorker
) -> None:
    (later,) = submit(engine, run_at=NOW + 10)
    assert engine.claim_scheduled(worker, later) is None
    assert reader.ids() == [later.id]
    reader.answer()
    assert engine.claim_scheduled(worker, later) is later


def test_a_sleeping_worker_is_woken_when_the_payload_is_there(
    engine: Engine, reader: RecordingReader, worker: RecordingWorker
) -> None:
    submit(engine)
    engine.sleep(worker)
    assert worker.idle, "there is no job for it yet"
    woken = worker.woken
    submit(engine)
    assert worker.woken == woken, "a new job behind one that is being read wakes nobody"
    reader.answer()
    engine.tick(NOW)
    assert worker.woken == woken + 1


def test_after_a_failed_read_the_next_claim_reads_again(
    engine: Engine, reader: RecordingReader, worker: RecordingWorker
) -> None:
    (cold,) = submit(engine)
    assert engine.claim(worker) is None
    queue, _ = reader.asked.pop()
    engine.payloads.failed(queue, b"f")
    assert cold.is_cold
    assert engine.claim(worker) is None
    reader.answer()
    assert engine.claim(worker) is cold


@pytest.mark.parametrize("payload", [None, b"other"], ids=["gone", "of another size"])
def test_a_job_whose_payload_is_gone_ends(
    engine: Engine, reader: RecordingReader, worker: RecordingWorker, payload: bytes | None
) -> None:
    (cold,) = submit(engine)
    engine.claim(worker)
    assert reader.answer(payload) == [cold]
    assert (cold.state, cold.reason) == (JobState.CANCELLED, GONE)
    assert (engine.payloads.cold_jobs, engine.queued_bytes) == (0, 0)


def test_what_is_read_arrives_too_late_for_a_job_that_has_ended(
    engine: Engine, reader: RecordingReader, worker: RecordingWorker
) -> None:
    (cold,) = submit(engine)
    engine.claim(worker)
    engine.cancel(cold)
    assert reader.answer() == []
    assert (engine.payloads.cold_jobs, engine.payloads.cold_bytes) == (0, 0)


def test_payloads_are_read_ahead_in_order(engine: Engine, reader: RecordingReader, worker: RecordingWorker) -> None:
    jobs = submit(engine, 3 * READ_JOBS)
    engine.payloads.budget = 10**9
    assert engine.claim(worker) is None
    assert reader.ids() == [job.id for job in jobs[:READ_JOBS]]
    reader.answer()
    for job in jobs[: READ_JOBS // 2]:
        assert engine.claim(worker) is job
    assert reader.ids() == [job.id for job in jobs[READ_JOBS : 2 * READ_JOBS]], "when half of them are used"
    for job in jobs[READ_JOBS // 2 : READ_JOBS]:
        assert engine.claim(worker) is job
    assert engine.claim(worker) is None


def test_large_payloads_are_read_one_by_one(engine: Engine, reader: RecordingReader, worker: RecordingWorker) -> None:
    engine.payloads.budget = 10**9
    size = READ_BYTES // 2 + 1
    jobs = [engine.submit(b"f", b"", bytes(size), 1, True) for _ in range(3)]
    engine.payloads.budget = 1
    engine.payloads.committed(jobs)
    engine.payloads.budget = 10**9
    engine.claim(worker)
    assert reader.ids() == [jobs[0].id]


def test_without_room_the_next_job_alone_is_read(
    engine: Engine, reader: RecordingReader, worker: RecordingWorker
) -> None:
    jobs = submit(engine, 10)
    for job in jobs:
        assert engine.claim(worker) is None
        assert reader.ids() == [job.id]
        reader.answer()
        assert engine.claim(worker) is job


def test_partitions_are_read_ahead_in_the_order_of_their_turns(
    engine: Engine, reader: RecordingReader, worker: RecordingWorker
) -> None:
    large = [engine.submit(b"f", b"", b"payload", 1, True, partition=b"large") for _ in range(5)]
    small = [engine.submit(b"f", b"", b"payload", 1, True, partition=b"small") for _ in range(2)]
    engine.payloads.committed([*large, *small])
    engine.payloads.budget = 10**9
    engine.claim(worker)
    turns = [large[0], small[0], large[1], small[1], *large[2:]]
    assert reader.ids() == [job.id for job in turns]
    reader.answer()
    assert [engine.claim(worker) for _ in turns] == turns


def test_a_job_with_an_earlier_time_is_read_before_the_others(
    engine: Engine, reader: RecordingReader, worker: RecordingWorker
) -> None:
    jobs = [engine.submit(b"f", b"", b"payload", 1, True) for _ in range(3)]
    early = [engine.submit(b"f", b"", b"payload", 1, True, run_at=NOW - number) for number in (1, 3, 2)]
    engine.payloads.committed([*jobs, *early])
    engine.payloads.budget = 10**9
    engine.claim(worker)
    assert reader.ids() == [early[1].id, early[2].id, early[0].id, *(job.id for job in jobs)]


def test_a_dead_job_is_cold_and_can_be_retried(
    engine: Engine, reader: RecordingReader, worker: RecordingWorker, journal: RecordingJournal
) -> None:
    engine.payloads.budget = 10**9
    job = engine.submit(b"f", b"", b"payload", 1, True)
    engine.claim(worker)
    engine.mark_dead(job, "why")
    engine.payloads.committed([job])
    assert (job.is_cold, engine.payloads.cold_bytes, engine.queued_bytes) == (True, 7, JOB_BYTES)
    engine.retry(job)
    assert (job.state, job.is_cold, engine.payloads.cold_jobs) == (JobState.QUEUED, True, 1)
    assert engine.claim(worker) is None
    reader.answer()
    assert engine.claim(worker) is job


def test_a_workflow_stays_warm(engine: Engine, reader: RecordingReader) -> None:
    """Its payload becomes its result, without a worker."""
    workflow = engine.submit_workflow([MemberJob(b"f", b"payload")], b"graph")
    members = [job for job in engine.jobs.values() if job is not workflow]
    engine.payloads.committed([workflow, *members])
    assert [workflow.is_cold, *(job.is_cold for job in members)] == [False, True]


def test_a_restored_job_without_a_payload_is_cold(
    engine: Engine, reader: RecordingReader, worker: RecordingWorker
) -> None:
    jobs = [LiveJob(id, b"H:%s:%d" % (host, id), b"f", b"", b"", 1, True, NOW, NOW, "gearman")
            for id, host in ((5, b"localhost"), (6, b"elsewhere"))]  # fmt: skip
    for job in jobs:
        job.leave_payload(7)
        engine.restore(job)
    assert [job.handle for job in jobs] == [b"H:localhost:5", b"H:elsewhere:6"]
    assert (engine.payloads.cold_jobs, engine.payloads.cold_bytes, engine.queued_bytes) == (2, 14, 2 * JOB_BYTES)
    engine.claim(worker)
    engine.payloads.budget = 10**9
    reader.answer()
    assert engine.claim(worker) is jobs[0]
    assert engine.claim(worker) is None
    reader.answer()
    claimed = engine.claim(worker)
    assert claimed is jobs[1]
    assert claimed.handle == b"H:elsewhere:6"


def test_only_payloads_in_memory_count_for_the_limit(journal: RecordingJournal) -> None:
    engine = Engine(Policy(max_queued_bytes=3 * JOB_BYTES + 1000), journal=journal)
    engine.payloads.reader = RecordingReader(engine)
    engine.payloads.budget = 1
    for _ in range(3):
        engine.payloads.committed([engine.submit(b"f", b"", bytes(1000), 1, True)])
    assert engine.queued_bytes == 3 * JOB_BYTES


def test_a_handle_that_looks_like_a_prefix_stays_in_memory(engine: Engine, reader: RecordingReader) -> None:
    """No server makes such handles; a store that was edited may have them."""
    (job,) = submit(engine)
    odd = LiveJob(9, b"odd:", b"f", b"", b"payload", 1, True, NOW, NOW, "gearman")
    engine.restore(odd)
    engine.payloads.committed([odd])
    assert (odd.is_cold, odd.handle, job.is_cold) == (False, b"odd:", True)
