"""Loading a dump into a running server whose store is in memory.

Nothing is loaded of a dump with an invalid line. Conflicts are treated as in a file (`store/loader.py`), with the jobs
that the server has at that moment. A large dump comes in parts, each a dump of its own.
"""

from typing import Final

from geartrain.admin.base import LoadValue
from geartrain.admin.loop_break import LoopBreak
from geartrain.admin.views import LoadView
from geartrain.engine.engine import Engine
from geartrain.engine.job import LiveJob
from geartrain.engine.policy import JOB_BYTES
from geartrain.errors import AdminError, GeartrainError
from geartrain.model import JobState, Record
from geartrain.runtime.memory_journal import MemoryJournal
from geartrain.runtime.tick import TickLoop
from geartrain.store import dump
from geartrain.store.contract import row
from geartrain.store.load_counts import LoadCounts
from geartrain.store.memory import MemoryStore

_REPLACED: Final = "replaced by a job of a dump"


class DumpLoader:
    """One per server with the memory store."""

    def __init__(self, tick_loop: TickLoop, store: MemoryStore, journal: MemoryJournal) -> None:
        self._tick_loop = tick_loop
        self._store = store
        self._journal = journal

    async def load(self, lines: bytes, replace: bool, load_value: LoadValue) -> LoadView:
        """Load a dump; an AdminError says which line is invalid, or that there is no room."""
        reader = dump.DumpReader(LiveJob)
        entries = await _read(reader, lines)
        notices: list[str] = []
        counts = LoadCounts(replace, notices.append)
        engine = self._tick_loop.engine
        engine.next_id = max(engine.next_id, reader.next_id, 1 + max(map(_id, entries), default=0))
        load = _Load(engine, self._store, counts, load_value)
        loop_break = LoopBreak()
        for entry in sorted(entries, key=_order):
            self._tick_loop.begin_tick()
            load.add(entry)
            await loop_break.take()
        self._tick_loop.begin_tick().settle()
        if counts.records:
            self._journal.prune()
        return LoadView(*counts.summary(engine.next_id), notices)


class _Load:
    """Adds entries, each at once: between two of them, the server goes on."""

    def __init__(self, engine: Engine, store: MemoryStore, counts: LoadCounts, load_value: LoadValue) -> None:
        self._engine = engine
        self._store = store
        self._counts = counts
        self._load_value = load_value

    def add(self, entry: dump.Entry) -> None:
        if isinstance(entry, dump.SavedValue):
            self._value(entry)
        elif isinstance(entry, LiveJob):
            self._job(entry)
        elif isinstance(entry, dump.FailedJob):
            self._record(entry.record, row(entry.job))
        elif isinstance(entry, Record):
            self._record(entry, None)

    def _value(self, saved: dump.SavedValue) -> None:
        counts = self._counts
        try:
            loaded, was_there = self._load_value(saved.name, saved.value, counts.replace)
        except GeartrainError as error:
            counts.refuse(f"{saved.name} was not loaded: {error}")
            return
        counts.values += loaded
        counts.replaced += loaded and was_there
        counts.present += not loaded

    def _job(self, job: LiveJob) -> None:
        engine = self._engine
        others = self._holders(job.id, job.handle)
        holder = engine.unique_jobs.get(job.function, job.unique) if job.unique else None
        if holder is not None and job.state is not JobState.DEAD:
            others[holder.handle] = others.get(holder.handle, "unique key")
        if self._counts.accepts(job.handle, others):
            size = len(job.payload) + JOB_BYTES
            if size > engine.free_bytes:
                limit = engine.policy.max_queued_bytes
                raise AdminError("conflict", f"the payloads of all jobs reach max_queued_bytes ({limit} bytes)")
            self._remove(job.id, others)
            self._restore(job)
            self._counts.jobs += 1

    def _restore(self, job: LiveJob) -> None:
        engine = self._engine
        if 0.0 < job.expires_at <= engine.now:
            job.run_at = engine.now + 1.0  # no worker gets it before it has expired
        engine.restore(job)
        engine.end_expired(1)

    def _record(self, record: Record, failed_job: tuple[object, ...] | None) -> None:
        others = self._holders(record.id, record.handle)
        if self._counts.accepts(record.handle, others):
            self._remove(record.id, others)
            self._store.load_record(record, failed_job)
            self._counts.records += 1

    def _holders(self, id: int, handle: bytes) -> dict[bytes, str]:
        """The handles of the jobs that have this id or this handle, and which of them they have."""
        engine = self._engine
        others: dict[bytes, str] = {}
        if engine.find(handle) is not None or engine.find_dead(handle) is not None:
            others[handle] = "handle"
        live = engine.jobs.get(id) or engine.dead.get(id)
        recorded = self._store.record_handle(id)
        if live is not None:
            others[live.handle] = "id"
        elif recorded is not None:
            others[recorded] = "id"
        return others

    def _remove(self, id: int, others: dict[bytes, str]) -> None:
        """Cancel the jobs in the way, and remove the record with this id, which may be of one of them."""
        for handle in others:
            job = self._engine.find(handle) or self._engine.find_dead(handle)
            if job is not None:
                self._engine.cancel(job, _REPLACED)
        if others:
            self._store.remove_record(id)


async def _read(reader: dump.DumpReader, lines: bytes) -> list[dump.Entry]:
    """All entries; nothing is loaded before the last line was read."""
    entries: list[dump.Entry] = []
    loop_break = LoopBreak()
    try:
        for entry in reader.read(lines.splitlines(keepends=True)):
            entries.append(entry)
            await loop_break.take()
    except dump.DumpError as error:
        raise AdminError("bad-request", f"{error}; nothing was loaded") from None
    return entries


def _id(entry: dump.Entry) -> int:
    if isinstance(entry, dump.SavedValue):
        return 0
    return entry.record.id if isinstance(entry, dump.FailedJob) else entry.id


def _order(entry: dump.Entry) -> tuple[bool, float]:
    """Values first, then jobs by the time at which they may run, as the engine restores them."""
    if isinstance(entry, dump.SavedValue):
        return (False, 0.0)
    return (True, entry.run_at if isinstance(entry, LiveJob) else 0.0)
