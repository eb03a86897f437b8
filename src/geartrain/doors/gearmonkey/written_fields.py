"""Fields of the hashes of unfinished jobs that the engine does not have.

Some are a program's own: any name that the document does not use. They belong to the job and are saved with it, so
that they survive a restart. The others are the reports of the worker that runs the job, as it wrote them: progress,
an output without a status yet, a status without an output yet. They are dropped when the job goes back to its queue.
"""

import json
from collections.abc import Mapping
from typing import Final

from geartrain.admin.saved_values import SavedValues
from geartrain.doors.gearmonkey import keys
from geartrain.engine.engine import Engine
from geartrain.runtime.value_feed import ValueFeed

Fields = dict[bytes, bytes]

STATUS: Final = b"status"
INPUT: Final = b"input"
OUTPUT: Final = b"output"
DIVIDEND: Final = b"status:dividend"
DIVISOR: Final = b"status:divisor"
DOCUMENTED: Final = frozenset({STATUS, INPUT, OUTPUT, DIVIDEND, DIVISOR})

MOST_FIELDS: Final = 64  # of a program's own, in one hash
MOST_BYTES: Final = 64 * 1024  # of their names and values
_MOST_JOBS: Final = 100_000  # with fields of a program's own
_MOST_BYTES_IN_ALL: Final = 256 * 1024 * 1024  # of all hashes, reports included
KIND: Final = "gearmonkey-fields"  # of saved value


class WrittenHash:
    """What was written to the hash of one job."""

    __slots__ = ("own", "report")

    def __init__(self, own: Fields) -> None:
        self.own = own  # a program's own fields
        self.report: Fields = {}

    @property
    def size(self) -> int:
        return size_of(self.own) + size_of(self.report)


class WrittenFields:
    """By the job's id."""

    def __init__(self, engine: Engine, saved: Mapping[str, bytes], values: ValueFeed | None = None) -> None:
        self._engine = engine
        self._hashes: dict[int, WrittenHash] = {}
        self._bytes = 0
        self.most_jobs = _MOST_JOBS
        # Where several servers share the store, there are also the fields of their jobs, which this one may take over.
        self._is_shared = values is not None and values.is_shared
        self._saved = SavedValues(KIND, saved, engine.journal.save_value, is_shared=self._is_shared)
        self._load()
        if values is not None:
            values.subscribe(self._values_changed)

    def __len__(self) -> int:
        return len(self._hashes)

    def get(self, number: int) -> WrittenHash | None:
        """What was written to the hash of a job, if anything."""
        return self._hashes.get(number)

    def write_own(self, number: int, fields: Fields, durable: bool) -> None:
        """Write a program's own fields; with `durable`, save them. An error if there is no room for them."""
        written = self._hashes.get(number)
        own = {**(written.own if written is not None else {}), **fields}
        check_own(own)
        self._make_room(size_of(fields), 0 if written is not None else 1)
        self._replace_own(number, own, durable)

    def load(self, _slot: str, value: bytes, replace: bool) -> tuple[bool, bool]:
        """Load the fields of a job of a dump, if the job is here; whether they were loaded, and whether it had some."""
        number, own = _decode(value)
        written = self._hashes.get(number)
        had_some = written is not None and bool(written.own)
        if not self._is_known(number) or (had_some and not replace):
            return False, had_some
        self.write_own(number, own, durable=True)
        return True, had_some

    def strip_own(self, number: int, names: list[bytes], durable: bool) -> int:
        """Delete fields of a program's own; returns how many there were."""
        written = self._hashes.get(number)
        if written is None:
            return 0
        own = {name: value for name, value in written.own.items() if name not in names}
        gone = len(written.own) - len(own)
        self._replace_own(number, own, durable)
        return gone

    def report(self, number: int, fields: Fields) -> Fields:
        """Write what a worker reports; returns its whole report so far. An error if there is no room for it."""
        self._make_room(size_of(fields), 0)
        return self._report(number, fields)

    def note_progress(self, number: int, dividend: bytes, divisor: bytes) -> None:
        """The same for the progress of a worker of another door, which is small and is never refused."""
        self._report(number, {DIVIDEND: dividend, DIVISOR: divisor})

    def drop_status(self, number: int) -> None:
        """The status that the worker has written is not the last word, or has taken effect."""
        written = self._hashes.get(number)
        if written is not None and STATUS in written.report:
            self._bytes -= len(STATUS) + len(written.report.pop(STATUS))

    def drop_report(self, number: int) -> None:
        """The job is no longer with the worker that has reported."""
        written = self._hashes.get(number)
        if written is not None and written.report:
            self._bytes -= size_of(written.report)
            written.report = {}
            if not written.own:
                del self._hashes[number]

    def remove(self, number: int) -> None:
        """The job has ended, or was not submitted after all."""
        written = self._hashes.pop(number, None)
        if written is not None:
            self._bytes -= written.size
            if written.own:
                self._saved.remove(str(number))

    def _report(self, number: int, fields: Fields) -> Fields:
        written = self._hashes.get(number)
        if written is None:
            written = self._hashes[number] = WrittenHash({})
        before = written.size
        written.report.update(fields)
        self._bytes += written.size - before
        return written.report

    def _replace_own(self, number: int, own: Fields, durable: bool) -> None:
        written = self._hashes.setdefault(number, WrittenHash({}))
        self._bytes += size_of(own) - size_of(written.own)
        written.own = own
        if durable and own:
            self._saved.put(str(number), _encode(number, own))
        elif not own:
            self._saved.remove(str(number))
            if not written.report:
                del self._hashes[number]

    def _make_room(self, size: int, jobs: int) -> None:
        """Raise an error if there is no room, also without the hashes of dead jobs that were deleted."""
        if self._is_full(size, jobs):
            for number in [number for number in self._hashes if not self._is_known(number)]:
                self.remove(number)
            if self._is_full(size, jobs):
                raise keys.refusal("the hashes of unfinished jobs are full; finish some jobs first")

    def _is_full(self, size: int, jobs: int) -> bool:
        return self._bytes + size > _MOST_BYTES_IN_ALL or len(self._hashes) + jobs > self.most_jobs

    def _is_known(self, number: int) -> bool:
        return self._is_shared or number in self._engine.jobs or number in self._engine.dead

    def _values_changed(self, values: Mapping[str, bytes]) -> None:
        """Another server has changed the fields of its jobs."""
        for slot, value in self._saved.changes(values):
            number, own = _decode(value)
            if value:
                self._saved.assign(str(number), slot)
            else:
                number = int(self._saved.name_of(slot) or 0)
            self._take(number, own)

    def _take(self, number: int, own: Fields) -> None:
        """Use fields that are saved."""
        written = self._hashes.setdefault(number, WrittenHash({}))
        self._bytes += size_of(own) - size_of(written.own)
        written.own = own
        if not own and not written.report:
            del self._hashes[number]

    def _load(self) -> None:
        """Restore saved fields, and delete those of jobs that no longer exist."""
        for slot, value in list(self._saved.values()):
            number, own = _decode(value)
            self._saved.assign(str(number), slot)
            if self._is_known(number) and number not in self._hashes:
                self._take(number, own)
            elif not self._is_known(number):
                self._saved.remove(str(number))


def own_fields(fields: Fields) -> Fields:
    """The fields that are a program's own.

    >>> own_fields({b"status": b"idle", b"colour": b"red"})
    {b'colour': b'red'}
    """
    return {name: value for name, value in fields.items() if name not in DOCUMENTED}


def has_own(fields: Fields) -> bool:
    """Whether there are fields of a program's own."""
    for name in fields:  # noqa: SIM110 (a loop is compiled, a generator is not)
        if name not in DOCUMENTED:
            return True
    return False


def check_own(own: Fields) -> None:
    """Raise an error for more fields than a hash may have."""
    if len(own) > MOST_FIELDS:
        raise keys.refusal(f"a job's hash has at most {MOST_FIELDS} fields that are not the document's")
    if size_of(own) > MOST_BYTES:
        raise keys.refusal(f"the fields of a job's hash that are not the document's have at most {MOST_BYTES} bytes")


def size_of(fields: Fields) -> int:
    """Bytes of names and values."""
    size = 0
    for name, value in fields.items():
        size += len(name) + len(value)
    return size


def _encode(number: int, own: Fields) -> bytes:
    texts = {name.decode("latin-1"): value.decode("latin-1") for name, value in own.items()}
    return json.dumps([number, texts], separators=(",", ":")).encode()


def _decode(value: bytes) -> tuple[int, Fields]:
    """Invalid data is ignored: a job must not be lost because its fields are damaged."""
    try:
        number, texts = json.loads(value)
        own = {str(name).encode("latin-1"): str(text).encode("latin-1") for name, text in texts.items()}
        return int(number), own
    except (ValueError, TypeError, AttributeError, RecursionError):
        return 0, {}
