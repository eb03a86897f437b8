"""The dump format and loading: every job can be read back; incomplete and invalid dumps are refused."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geartrain.errors import StoreError
from geartrain.model import Attempt, Job, JobState, pack_attempts
from geartrain.store import contract, dump, load_counts, loader, rows
from geartrain.store.contract import Record
from geartrain.store.dump import DumpError
from geartrain.store.snapshot import Snapshot
from geartrain.store.sqlite import SqliteStore
from tests.contract.stores.factories import prune
from tests.support.examples import examples

OLD_DUMP = Path(__file__).parent / "fixtures" / "dump-0.1.jsonl"
OCTETS = st.one_of(st.binary(max_size=40), st.text(max_size=20).map(str.encode))
TEXT = st.text(max_size=20)
TIMES = st.floats(allow_nan=False, allow_infinity=False).map(lambda time: time + 0.0)  # there is one zero
INTEGERS = st.integers(-(2**63), 2**63 - 1)
IDS = st.integers(1, dump.LAST_ID)
TRIALS = st.lists(st.builds(Attempt, TIMES, TIMES, TEXT, OCTETS, TEXT), max_size=3)


def job(id: int = 7, handle: bytes = b"", **changes: object) -> Job:
    found = Job(id, handle or b"H:host:%d" % id, b"reverse", b"", b"test", 1, True, 5.0, 5.0, "gearman")
    for name, value in changes.items():
        setattr(found, name, value)
    return found


def record(id: int = 3, **changes: object) -> Record:
    state = int(JobState.DONE)
    found = Record(
        id, b"H:host:%d" % id, b"f", b"", 1, state, 1.0, 2.0, 3.0, 1, "gearman", "gearman", b"w", 0, "", b"r"
    )
    return found._replace(**changes)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    names = [draw(OCTETS.filter(bool)), draw(OCTETS), draw(OCTETS), draw(OCTETS)]
    made = Job(draw(IDS), *names, draw(st.integers(0, 2)), True, draw(TIMES), draw(TIMES), draw(TEXT))
    made.state = draw(st.sampled_from([JobState.QUEUED, JobState.DEAD]))
    made.attempts, made.count, made.timeout = draw(INTEGERS), draw(INTEGERS), draw(TIMES)
    made.reducer, made.reason = draw(OCTETS), draw(TEXT)
    made.failed_attempts = draw(TRIALS)
    made.keeps_result, made.keep_for, made.expires_at = draw(st.booleans()), draw(TIMES), draw(TIMES)
    made.user = draw(TEXT)
    return made


RECORDS = st.builds(
    Record, IDS, OCTETS, OCTETS, OCTETS, st.integers(0, 2),
    st.sampled_from([int(JobState.DONE), int(JobState.FAILED), int(JobState.CANCELLED), int(JobState.EXPIRED)]),
    TIMES, TIMES, TIMES, INTEGERS, TEXT, TEXT, OCTETS, INTEGERS, TEXT, OCTETS, TRIALS.map(pack_attempts),
    st.booleans(), result_size=st.just(0), result_kept=st.just(0), keep_until=TIMES, remove_at=TIMES,
    progress=st.sampled_from(["", "1/2/0", "-1/18446744073709551616/30"]),
)  # fmt: skip


def dumped(*entries: Job | Record, next_id: int = 100) -> list[bytes]:
    """The lines of a whole dump."""
    waiting = [dump.job_line(entry) for entry in entries if isinstance(entry, Job)]
    over = [dump.record_line(entry) for entry in entries if isinstance(entry, Record)]
    return [dump.header(1.5, next_id), *waiting, *over, dump.end(len(waiting), len(over))]


def read(lines: list[bytes]) -> list[dump.Entry]:
    return list(dump.DumpReader().read(lines))


# What comes back


@given(jobs())
def test_every_job_can_be_read_back(made: Job) -> None:
    [found] = read(dumped(made))
    assert isinstance(found, Job)
    assert contract.row(found) == contract.row(made)
    assert found.background


@given(RECORDS)
def test_every_record_can_be_read_back(made: Record) -> None:
    assert read(dumped(made)) == [made]


@given(jobs(), RECORDS)
def test_every_failed_job_can_be_read_back(made: Job, over: Record) -> None:
    over = over._replace(
        id=made.id, handle=made.handle, function=made.function, unique=made.unique, priority=made.priority,
        state=int(JobState.FAILED), submitted_at=made.submitted_at, attempts=made.attempts, door=made.door,
        reason=made.reason, failed_attempts=pack_attempts(made.failed_attempts), keeps_result=made.keeps_result,
    )  # fmt: skip
    made.state = JobState.FAILED
    lines = [dump.header(1.5, 100), dump.record_line(over, made), dump.end(0, 1)]
    [found] = dump.DumpReader().read(lines)
    assert isinstance(found, dump.FailedJob)
    assert found.record == over
    assert contract.row(found.job) == contract.row(made)


@given(TEXT, OCTETS)
def test_every_saved_value_can_be_read_back(name: str, value: bytes) -> None:
    made = dump.SavedValue(name, value)
    assert list(dump.DumpReader().read([dump.header(1.5, 100), dump.value_line(made), dump.end(0, 0, 1)])) == [made]


def test_missing_value_is_noticed() -> None:
    with pytest.raises(DumpError, match="counts 1 values, but the dump has 0"):
        list(dump.DumpReader().read([dump.header(1.5, 100), dump.end(0, 0, 1)]))


def test_record_of_a_cut_result_is_read_back() -> None:
    made = record(result=b"beginning", result_size=100, result_kept=9)
    assert read(dumped(made)) == [made]


def test_size_of_a_cut_result_is_larger_than_what_is_left_of_it() -> None:
    with pytest.raises(DumpError, match="line 2: result_size: a result that was cut is shorter than that"):
        read(dumped(record(result=b"all of it", result_size=9)))


def test_large_results_are_dumped_and_loaded_whole(store: SqliteStore, tmp_path: Path) -> None:
    large, cut = bytes(range(256)) * 1000, b"x" * 100_000
    load(store, dumped(record(1, result=large), record(2, result=cut, result_size=10**9), record(3)))
    with Snapshot(store.path) as snapshot:
        lines = dumped(*snapshot.records())
    other = SqliteStore(tmp_path / "other.db")
    load(other, lines)
    with Snapshot(other.path) as snapshot:
        found = {entry.id: (entry.result, entry.result_size) for entry in snapshot.records()}
    assert found == {1: (large, 0), 2: (cut, 10**9), 3: (b"r", 0)}


def test_replaced_record_takes_its_large_result_with_it(store: SqliteStore) -> None:
    load(store, dumped(record(1, result=b"x" * 200_000)))
    load(store, dumped(record(1, result=b"y")), replace=True)
    with Snapshot(store.path) as snapshot:
        assert [(entry.result, entry.result_size) for entry in snapshot.records()] == [(b"y", 0)]


@given(OCTETS)
def test_bytes_are_text_where_they_are_utf8_and_base64_otherwise(payload: bytes) -> None:
    written = json.loads(dump.job_line(job(payload=payload)))["payload"]
    if isinstance(written, str):
        assert written.encode() == payload
    else:
        assert base64.b64decode(written["base64"], validate=True) == payload
        with pytest.raises(UnicodeDecodeError):
            payload.decode()


def test_base64_is_read_even_where_text_would_do() -> None:
    lines = dumped(job())
    lines[1] = lines[1].replace(b'"test"', b'{"base64":"dGVzdA=="}')
    [found] = read(lines)
    assert isinstance(found, Job)
    assert found.payload == b"test"


@given(jobs())
def test_every_line_is_one_line_of_json(made: Job) -> None:
    for line in dumped(made):
        assert line.count(b"\n") == 1
        assert line.endswith(b"\n")
        json.loads(line)


def test_a_line_is_as_documented() -> None:
    assert dump.job_line(job(unique=b"u", payload=b"\xff", attempts=2, state=JobState.DEAD, reason="too often")) == (
        b'{"geartrain":"job","id":7,"handle":"H:host:7","function":"reverse","unique":"u",'
        b'"payload":{"base64":"/w=="},"priority":"normal","state":"dead","run_at":5.0,"submitted_at":5.0,'
        b'"attempts":2,"count":0,"timeout":0.0,"reducer":"","door":"gearman","reason":"too often","trials":[],'
        b'"keeps_result":true,"keep_for":0.0,"expires_at":0.0,"user":"","partition":"","after":[],'
        b'"runs_anyway":false}\n'
    )


def test_a_dump_of_version_1_is_read() -> None:
    lines = [line.replace(b',"trials":[],"keeps_result":true', b"") for line in dumped(job(), record())]
    lines[0] = lines[0].replace(b'"version":8', b'"version":1')
    assert b"trials" not in b"".join(lines)
    waiting, over = read(lines)
    assert isinstance(waiting, Job)
    assert waiting.failed_attempts is None
    assert over == record()


def test_a_dump_of_version_2_is_read() -> None:
    entries = read(OLD_DUMP.read_bytes().splitlines(keepends=True))
    assert [(entry.id, entry.door, entry.keeps_result) for entry in entries] == [
        (5, "danga", True), (6, "danga", False), (7, "gearman", True), (8, "danga", False), (9, "danga", False),
        (1, "gearman", True), (2, "danga", True), (3, "danga", False), (4, "danga", False),
    ]  # fmt: skip


def test_a_dump_of_version_2_is_the_same_when_written_as_version_3() -> None:
    entries = read(OLD_DUMP.read_bytes().splitlines(keepends=True))
    again = read(dumped(*entries))
    assert [comparable(entry) for entry in again] == [comparable(entry) for entry in entries]


def comparable(entry: Job | Record) -> tuple[object, ...]:
    return contract.row(entry) if isinstance(entry, Job) else tuple(entry)


def test_since_version_3_the_suffix_has_no_meaning() -> None:
    [found] = read(dumped(job(door="my+throw-away")))
    assert (found.door, found.keeps_result) == ("my+throw-away", True)


def test_a_dump_of_version_5_is_read() -> None:
    """There, the time at which a record is removed is a negative `keep_until`."""
    lines = dumped(record(3, keep_until=-60.0), record(4, keep_until=50.0), record(5))
    lines = [line.replace(b',"remove_at":0.0', b"") for line in lines]
    lines[0] = lines[0].replace(b'"version":8', b'"version":5')
    assert read(lines) == [record(3, remove_at=60.0), record(4, keep_until=50.0), record(5)]


def test_header_has_the_next_id() -> None:
    reader = dump.DumpReader()
    assert list(reader.read(dumped(next_id=4711))) == []
    assert reader.next_id == 4711


@pytest.mark.parametrize("endless", [float("inf"), float("-inf"), float("nan")])
def test_infinity_and_nan_are_refused(endless: float) -> None:
    with pytest.raises(rows.BrokenRowError, match="run_at"):
        dump.job_line(job(run_at=endless))
    with pytest.raises(rows.BrokenRowError, match="finished_at"):
        dump.record_line(record(finished_at=endless))


@pytest.mark.parametrize("wrong", [{"priority": 9}, {"state": int(JobState.QUEUED)}, {"reason": b"\xff"}])
def test_invalid_record_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(rows.BrokenRowError):
        dump.record_line(record(**wrong))


# What is refused

GOOD = dump.job_line(job())


def changed(old: bytes, new: bytes) -> bytes:
    assert old in GOOD
    return GOOD.replace(old, new)


BAD_LINES = {
    "not JSON": (b"hello\n", "invalid JSON"),
    "blank": (b"\n", "invalid JSON"),
    "not an object": (b"[]\n", "Expected object, got array"),
    "no kind": (b"{}\n", "missing required field geartrain"),
    "unknown kind": (b'{"geartrain":"task"}\n', "geartrain: Invalid value 'task'"),
    "a header": (dump.header(1.0, 5), "must be the first line, and only the first"),
    "a field is missing": (changed(b'"door":"gearman",', b""), "missing required field door"),
    "a field too many": (changed(b'"count":0', b'"count":0,"color":1'), "unknown field color"),
    "an id that is text": (changed(b'"id":7', b'"id":"7"'), "id: Expected int, got str"),
    "an id of zero": (changed(b'"id":7', b'"id":0'), "id: Expected int >= 1"),
    "an id that is too large": (changed(b'"id":7', b'"id":%d' % 2**63), "id: Expected int <="),
    "a number that is too large": (changed(b'"attempts":0', b'"attempts":%d' % 2**64), "attempts: "),
    "a number that is none": (changed(b'"attempts":0', b'"attempts":true'), "attempts: Expected int, got bool"),
    "half an attempt": (changed(b'"attempts":0', b'"attempts":0.5'), "attempts: Expected int, got float"),
    "no handle": (changed(b'"H:host:7"', b'""'), "empty handle"),
    "no time": (changed(b'"run_at":5.0', b'"run_at":null'), "run_at: Expected float, got null"),
    "an endless time": (changed(b'"run_at":5.0', b'"run_at":1e999'), "run_at: "),
    "an unknown priority": (changed(b'"normal"', b'"urgent"'), "priority: Invalid enum value 'urgent'"),
    "an unknown state": (changed(b'"waiting"', b'"done"'), "state: Invalid enum value 'done'"),
    "bytes that are no UTF-8": (changed(b'"test"', b'"\xff"'), "invalid JSON"),
    "half a surrogate pair": (changed(b'"test"', b'"\\ud800"'), "invalid JSON"),
    "bad base64": (changed(b'"test"', b'{"base64":"%"}'), "payload.base64: Invalid base64"),
    "base64 without its padding": (changed(b'"test"', b'{"base64":"AA"}'), "payload.base64: Invalid base64"),
    "another encoding": (changed(b'"test"', b'{"hex":"ff"}'), "payload: "),
    "deep nesting": (b"[" * 100_000 + b"\n", "line 3: "),
}  # fmt: skip


@pytest.mark.parametrize(("line", "complaint"), BAD_LINES.values(), ids=BAD_LINES.keys())
def test_bad_line_is_named(line: bytes, complaint: str) -> None:
    lines = [*dumped(job(1))[:2], line, dump.end(2, 0)]
    with pytest.raises(DumpError) as refused:
        read(lines)
    assert str(refused.value).startswith("line 3: ")
    assert complaint in str(refused.value)


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ([], "the dump is empty"),
        ([GOOD], "line 1: the header"),
        ([b"hello"], "line 1: this is not a dump"),
        ([b"SQLite format 3\0..."], "line 1: this is a store file, not a dump"),
        ([b'{"geartrain":"dump","version":99,"more":[]}\n'], "line 1: this is a dump of version 99"),
        ([b'{"geartrain":"dump","version":0}\n'], "line 1: this is a dump of version 0; this version"),
        ([*dumped(job()), GOOD], "line 4: data after the end line"),
        ([*dumped(job()), *dumped(job())], "line 4: data after the end line"),
        ([*dumped(job())[:2], GOOD], "line 3: id 7 is also on line 2"),
        ([*dumped(job())[:2], dump.job_line(job(8, b"H:host:7"))], "line 3: handle H:host:7 is also on line 2"),
        ([*dumped(job())[:2], dump.end(2, 0)], "line 3: the end line counts 2 jobs, but the dump has 1"),
        ([*dumped(job())[:2], dump.end(1, 1)], "line 3: the end line counts 1 records, but the dump has 0"),
    ],
)  # fmt: skip
def test_wrong_dump_is_refused(lines: list[bytes], complaint: str) -> None:
    with pytest.raises(DumpError) as refused:
        read(lines)
    assert str(refused.value).startswith(complaint)


@given(st.lists(jobs(), max_size=3, unique_by=(lambda job: job.id, lambda job: job.handle)), st.data())
def test_dump_truncated_anywhere_is_refused(made: list[Job], data: st.DataObject) -> None:
    whole = b"".join(dumped(*made))
    cut = whole[: data.draw(st.integers(0, len(whole) - 2))]  # all but its last line end, which says nothing
    with pytest.raises(DumpError):
        read(cut.splitlines(keepends=True) if b"\n" in cut else [cut])


def test_last_line_needs_no_line_feed() -> None:
    lines = dumped(job())
    assert len(read([*lines[:-1], lines[-1].rstrip()])) == 1


def test_names_in_messages_have_no_control_sequences() -> None:
    assert dump.shown("H:größe\x1b[2J\n".encode() + b"\xff") == "H:größe\\x1b[2J\\n\\xff"


# Into a store and out again


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    return SqliteStore(tmp_path / "jobs.db")


def load(store: SqliteStore, lines: list[bytes], replace: bool = False) -> tuple[load_counts.Summary, list[str]]:
    notices: list[str] = []
    return loader.load(store, lines, replace, notices.append, lambda count: None), notices


def out(store: SqliteStore) -> list[bytes]:
    def fail(complaint: str) -> None:
        raise AssertionError(complaint)

    with Snapshot(store.path) as snapshot:
        return dumped(*snapshot.jobs(fail), *snapshot.records(), next_id=snapshot.next_id)


def handles(store: SqliteStore) -> Iterator[str]:
    """Of the jobs that wait, then of those that are over."""
    for line in out(store):
        entry = json.loads(line)
        if "handle" in entry:
            yield f"{entry['geartrain']} {entry['handle']}"


@examples(25)
@given(st.lists(jobs(), max_size=5), st.lists(RECORDS, max_size=5))
def test_dump_of_a_loaded_dump_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, made: list[Job], over: list[Record]
) -> None:
    """Unique ids, handles and unique keys are the engine's own rules, so the dump keeps them here too."""
    by_id = {entry.id: entry for entry in [*over, *made]}
    by_handle = {entry.handle: entry for entry in by_id.values()}
    apart = {(entry.function, entry.unique or entry.handle): entry for entry in by_handle.values()}
    in_order = sorted((entry for entry in apart.values() if isinstance(entry, Job)), key=lambda job: job.id)
    ended = sorted((entry for entry in apart.values() if isinstance(entry, Record)), key=lambda end: end.finished_at)
    lines = dumped(*in_order, *ended, next_id=dump.LAST_ID)
    target = SqliteStore(tmp_path_factory.mktemp("store") / "jobs.db")
    summary, notices = load(target, lines)
    assert (summary.jobs + summary.records, notices) == (len(apart), [])
    end = summary.next_id
    assert out(target) == [dump.header(1.5, end), *lines[1:]]


def test_next_id_is_above_all_loaded_ids(store: SqliteStore) -> None:
    assert load(store, dumped(job(500), record(700), next_id=3))[0].next_id == 701
    assert store.open() == 701
    store.close(701)
    assert load(store, dumped(next_id=9000))[0].next_id == 9000
    assert load(store, dumped(next_id=2))[0].next_id == 9000


def test_wrong_line_loads_nothing(store: SqliteStore) -> None:
    load(store, dumped(job(1), next_id=10))
    before = out(store)
    with pytest.raises(DumpError, match="line 4"):
        load(store, [*dumped(job(1), job(2))[:3], b"hello\n"], replace=True)
    with pytest.raises(DumpError, match="truncated"):
        load(store, dumped(job(2), job(3), next_id=1000)[:3])
    assert out(store) == before


def test_present_jobs_are_not_changed(store: SqliteStore) -> None:
    load(store, dumped(job(1, payload=b"old"), record(2, result=b"old")))
    summary, notices = load(store, dumped(job(1, payload=b"new"), job(2), record(2, result=b"new")))
    assert (summary.present, summary.clashing, summary.jobs, summary.records) == (3, 0, 0, 0)
    assert notices == []
    assert list(handles(store)) == ["job H:host:1", "record H:host:2"]
    assert b'"payload":"old"' in out(store)[1]


CLASHES = {
    "id": (job(1, b"H:other:1"), "H:host:1 has the same id"),
    "handle": (job(9, b"H:host:1"), "H:host:1 has the same handle"),
    "unique key": (job(9, b"H:other:9", unique=b"key"), "H:host:1 has the same unique key"),
    "id of one that is over": (job(2, b"H:other:2"), "H:host:2 has the same id"),
}


@pytest.mark.parametrize(("rival", "complaint"), CLASHES.values(), ids=CLASHES.keys())
def test_clashing_jobs_are_skipped_with_a_notice(store: SqliteStore, rival: Job, complaint: str) -> None:
    load(store, dumped(job(1, unique=b"key"), record(2)))
    before = out(store)
    summary, notices = load(store, dumped(rival))
    assert (summary.clashing, summary.present, summary.jobs) == (1, 0, 0)
    assert [notice.endswith(complaint) for notice in notices] == [True]
    assert out(store)[1:] == before[1:]


@pytest.mark.parametrize(("rival", "complaint"), CLASHES.values(), ids=CLASHES.keys())
def test_replace_removes_the_clashing_job(store: SqliteStore, rival: Job, complaint: str) -> None:
    load(store, dumped(job(1, unique=b"key"), record(2)))
    summary, notices = load(store, dumped(rival), replace=True)
    assert (summary.jobs, summary.replaced, notices) == (1, 1, [])
    left = "job H:host:1" if "over" in complaint or rival.id == 2 else "record H:host:2"
    assert sorted(handles(store)) == sorted([f"job {rival.handle.decode()}", left])


def test_one_job_can_replace_three(store: SqliteStore) -> None:
    load(store, dumped(job(1), job(2), job(3, unique=b"key"), job(4)))
    summary, _ = load(store, dumped(job(1, b"H:host:2", unique=b"key")), replace=True)
    assert (summary.jobs, summary.replaced) == (1, 1)
    assert list(handles(store)) == ["job H:host:2", "job H:host:4"]


def test_names_of_replaced_jobs_are_free(store: SqliteStore) -> None:
    load(store, dumped(job(1, unique=b"key")))
    lines = dumped(job(1, b"H:other:1"), job(8, b"H:host:1"), job(9, unique=b"key"))
    summary, _ = load(store, lines, replace=True)
    assert (summary.jobs, summary.replaced) == (3, 1)
    assert out(store)[1:] == lines[1:]


def test_unique_keys_of_dead_jobs_are_free(store: SqliteStore) -> None:
    load(store, dumped(job(1, unique=b"key", state=JobState.DEAD)))
    assert load(store, dumped(job(2, unique=b"key")))[0].jobs == 1
    assert load(store, dumped(job(3, unique=b"key", state=JobState.DEAD)))[0].jobs == 1


def test_duplicate_unique_key_in_a_dump_is_loaded_once(store: SqliteStore) -> None:
    summary, notices = load(store, dumped(job(1, unique=b"key"), job(2, unique=b"key")))
    assert (summary.jobs, summary.clashing) == (1, 1)
    assert notices == ["H:host:2 was not loaded: H:host:1 has the same unique key"]


def test_record_of_an_unfinished_job_is_skipped_or_replaces_it(store: SqliteStore) -> None:
    load(store, dumped(job(1)))
    assert load(store, dumped(record(1)))[0].present == 1
    assert list(handles(store)) == ["job H:host:1"]
    assert load(store, dumped(record(1)), replace=True)[0].replaced == 1
    assert list(handles(store)) == ["record H:host:1"]


def test_loaded_records_are_sorted_by_time_for_pruning(store: SqliteStore) -> None:
    load(store, dumped(*(record(id, finished_at=id * 10.0) for id in (11, 13, 15))))
    load(store, dumped(*(record(id, finished_at=id * 10.0) for id in (10, 12, 14))))
    assert [name[-2:] for name in handles(store)] == ["10", "11", "12", "13", "14", "15"]
    store.open()
    try:
        assert prune(store, before=125.0, keep=100) == 3
        assert prune(store, before=0.0, keep=2) == 1
        assert [found.id for found in store.records(contract.Query())] == [15, 14]
    finally:
        store.close(100)


def test_snapshot_does_not_see_later_changes(store: SqliteStore) -> None:
    load(store, dumped(job(1), job(2), next_id=10))
    store.open()
    try:
        with Snapshot(store.path) as snapshot:
            batch = contract.Batch()
            batch.changed, batch.finished, batch.ids_until = [contract.row(job(3))], [record(1)], 500
            store.commit(batch)
            assert snapshot.next_id == 10
            assert [found.id for found in snapshot.jobs(print)] == [1, 2]
            assert list(snapshot.records()) == []
        assert list(handles(store)) == ["job H:host:2", "job H:host:3", "record H:host:1"]
    finally:
        store.close(500)


def test_store_in_use_is_refused(store: SqliteStore) -> None:
    other = SqliteStore(store.path)
    other.open()
    try:
        with pytest.raises(StoreError, match="in use by process"):
            load(store, dumped(job()))
    finally:
        other.close(1)
