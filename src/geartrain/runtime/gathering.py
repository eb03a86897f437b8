"""The changes that the engine reports, gathered into the batch that is committed next."""

from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Journal
from geartrain.engine.job import LiveJob
from geartrain.engine.worker import Worker
from geartrain.runtime import records
from geartrain.store import contract


class GatheringJournal(Journal):
    """Appends a row for each change; whoever writes the batches derives from it."""

    _engine: Engine  # set before the first job ends

    def __init__(self, largest_result: int) -> None:
        self._largest_result = largest_result  # cut at once, so that the answer is the same before and after the commit
        self._batch = contract.Batch()
        self._accepted: list[LiveJob] = []  # jobs that exist since that batch
        self._changed: list[LiveJob] = []  # others that are saved in it
        self._reserving: list[int] = []  # ids of jobs of that batch that wait for their unique keys
        self.uncommitted = records.RecordChanges()

    def _note_change(self) -> None:
        """There is a change in the batch."""
        raise NotImplementedError

    def accepted(self, job: LiveJob) -> None:
        self._batch.accepted.append(contract.new_row(job))
        self._accepted.append(job)
        self._note_change()

    def changed(self, job: LiveJob) -> None:
        self._batch.changed.append(contract.row(job))
        self._changed.append(job)
        self._note_change()

    def revived(self, job: LiveJob) -> None:
        self._batch.revived.append(contract.row(job))
        self._changed.append(job)
        self._note_change()

    def reserving(self, job: LiveJob) -> None:
        self._reserving.append(job.id)

    def reserve_key(self, job: LiveJob) -> None:
        self._batch.accepted.append(contract.key_row(job))
        self._reserving.append(job.id)
        self._note_change()

    def release_key(self, job: LiveJob) -> None:
        self._batch.removed_jobs.append(job.id)
        self._note_change()

    def withdrawn(self, job: LiveJob) -> None:
        batch, id = self._batch, job.id
        batch.accepted = [row for row in batch.accepted if row[0] != id]
        batch.revived = [row for row in batch.revived if row[0] != id]
        batch.changed = [row for row in batch.changed if row[0] != id]
        batch.removed_records = [removed for removed in batch.removed_records if removed != id]
        self._accepted = [accepted for accepted in self._accepted if accepted is not job]

    def finished(self, job: LiveJob, result: bytes, worker: Worker | None) -> None:
        engine = self._engine
        policies = engine.function_policies
        keep_until = remove_at = 0.0
        if job.keep_for or policies:
            keep_until, remove_at = records.own_retention(job, engine.now, policies.get(job.function))
        record = records.make_record(job, result, worker, engine.now, keep_until, remove_at)
        if len(record.result) > self._largest_result:
            record = records.cut_result(record, self._largest_result)
        self._batch.finished.append(record)
        self.uncommitted.records[job.handle] = record
        self._note_change()

    def failed(self, job: LiveJob, result: bytes, worker: Worker | None) -> None:
        self.finished(job, result, worker)
        self._batch.failed.append(contract.row(job))
        payload = job.payload_in_memory
        if payload is not None:
            self.uncommitted.payloads[job.id] = payload

    def retried(self, job: LiveJob) -> None:
        self.remove_record(job.id)
        self.revived(job)

    def remove_record(self, id: int) -> None:
        self._batch.removed_records.append(id)
        self.uncommitted.removed.add(id)
        self._note_change()

    def add_log(self, id: int, added: bytes) -> None:
        self._batch.logs.append((id, added))
        self._note_change()

    def save_value(self, name: str, value: bytes) -> None:
        self._batch.saved_values[name] = value
        self._note_change()
