"""The hash of a job keeps what was written to it, as Redis does, and the job ends with its output."""

from collections.abc import Iterator

import pytest

from geartrain.doors.door import Limits
from geartrain.doors.gearmonkey import ending_jobs, written_fields
from geartrain.engine.interfaces import Journal, Watcher
from geartrain.engine.job import LiveJob, Progress
from geartrain.engine.worker import Worker
from geartrain.wire import resp
from tests.support import gearmonkey_door
from tests.support.gearmonkey_door import Bench, DoorPeer


@pytest.fixture
def door() -> Iterator[Bench]:
    with gearmonkey_door.opened() as bench:
        yield bench


@pytest.fixture
def worker(door: Bench) -> DoorPeer:
    return door.peer()


class RecordingWatcher(Watcher):
    """A client of another protocol that waits for the job."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[tuple[object, ...]] = []

    def progress(self, job: LiveJob, progress: Progress) -> None:
        self.events.append(("progress", progress.numerator, progress.denominator))

    def complete(self, job: LiveJob, result: bytes) -> None:
        self.events.append(("complete", result))

    def fail(self, job: LiveJob, reason: str) -> None:
        self.events.append(("fail", reason))

    def exception(self, job: LiveJob, data: bytes) -> None:
        self.events.append(("exception", data))


class OtherWorker(Worker):
    """A worker of another door."""

    def __init__(self) -> None:
        super().__init__("gearman")

    def wake(self) -> None: ...


def popped(door: Bench, worker: DoorPeer) -> tuple[int, RecordingWatcher]:
    number = door.submit()
    worker.ask("RPOP queue:f:normal")
    watcher = RecordingWatcher()
    job = door.engine.jobs.get(number)
    assert job is not None
    door.engine.watch(job, watcher)
    return number, watcher


def fields(peer: Bench | DoorPeer, number: int, *names: str) -> list[bytes | None]:
    answer = peer.ask(f"HMGET job:f:{number} {' '.join(names)}")
    lines = answer.split(b"\r\n")[1:-1]
    values: list[bytes | None] = []
    while lines:
        values.append(None if lines.pop(0) == b"$-1" else lines.pop(0))
    return values


class TestStatusAndOutput:
    """In two commands, in either order, in a transaction or not."""

    @pytest.mark.parametrize(("status", "event"), [("success", "complete"), ("error", "exception")])
    def test_status_first(self, door: Bench, worker: DoorPeer, status: str, event: str) -> None:
        number, watcher = popped(door, worker)
        worker.ask(f"HSET job:f:{number} status {status}")
        assert fields(door, number, "status", "output") == [status.encode(), None]
        worker.ask(f"HSET job:f:{number} output y")
        assert watcher.events == [(event, b"y")], "the other protocol's client got something else"
        assert fields(door, number, "status", "output") == [status.encode(), b"y"]
        assert not door.door.ending

    def test_output_first(self, door: Bench, worker: DoorPeer) -> None:
        number, watcher = popped(door, worker)
        worker.ask(f"HSET job:f:{number} output y")
        assert fields(door, number, "status", "output") == [b"busy", b"y"]
        worker.ask(f"HSET job:f:{number} status success")
        assert watcher.events == [("complete", b"y")]
        assert fields(door, number, "status", "output") == [b"success", b"y"]

    @pytest.mark.parametrize("first", ["status success", "output y"])
    def test_in_a_transaction(self, door: Bench, worker: DoorPeer, first: str) -> None:
        """Also after the commands that otherwise show that no output will follow."""
        number, watcher = popped(door, worker)
        second = "output y" if first == "status success" else "status success"
        ended = (f"EXPIRE job:f:{number} 90000", f"PUBLISH channel:f finish:{number}", f"LPUSH lock:f:{number} OK")
        worker.ask("MULTI", f"HSET job:f:{number} {first}", *ended, f"HSET job:f:{number} {second}", "EXEC")
        assert watcher.events == [("complete", b"y")]
        assert fields(door, number, "status", "output") == [b"success", b"y"]

    def test_over_connections_of_their_own(self, door: Bench) -> None:
        number = door.submit()
        for command in ("RPOP queue:f:normal", f"HSET job:f:{number} status success", f"HSET job:f:{number} output y"):
            assert b"ERR" not in door.ask(command)
        assert fields(door, number, "status", "output") == [b"success", b"y"]

    @pytest.mark.parametrize("command", ["EXPIRE job:f:{} 90000", "PUBLISH channel:f finish:{}", "LPUSH lock:f:{} OK"])
    def test_no_output_follows(self, door: Bench, worker: DoorPeer, command: str) -> None:
        number, watcher = popped(door, worker)
        worker.ask(f"HSET job:f:{number} status success", command.format(number))
        assert watcher.events == [("complete", b"")]
        assert fields(door, number, "status", "output") == [b"success", None]

    def test_no_output_follows_for_a_while(self, door: Bench, worker: DoorPeer) -> None:
        number, watcher = popped(door, worker)
        worker.ask(f"HSET job:f:{number} status error")
        door.pass_time(ending_jobs.OUTPUT_SECONDS)
        assert watcher.events == [("fail", "worker reported failure")]
        worker.ask(f"HSET job:f:{number} output late")
        assert fields(door, number, "status", "output") == [b"error", b"late"]
        assert b"is over" in worker.ask(f"HSET job:f:{number} output again")

    @pytest.mark.parametrize("grace", ["0", "60"])
    def test_worker_that_is_gone(self, door: Bench, worker: DoorPeer, grace: str) -> None:
        """The job is over, and not to be done again."""
        worker.ask(f"CLIENT GRACE {grace}")
        number, watcher = popped(door, worker)
        worker.ask(f"HSET job:f:{number} status success")
        worker.close()
        door.pass_time(ending_jobs.OUTPUT_SECONDS)
        assert watcher.events == [("complete", b"")]
        assert not door.engine.workers

    def test_status_that_is_taken_back(self, door: Bench, worker: DoorPeer) -> None:
        number, watcher = popped(door, worker)
        worker.ask(f"HSET job:f:{number} status success", f"HSET job:f:{number} status busy")
        door.pass_time(ending_jobs.OUTPUT_SECONDS)
        assert watcher.events == []
        assert fields(door, number, "status") == [b"busy"]

    def test_cancelled_while_it_waits_for_its_output(self, door: Bench, worker: DoorPeer) -> None:
        number, watcher = popped(door, worker)
        worker.ask(f"HSET job:f:{number} status success")
        job = door.engine.jobs.get(number)
        assert job is not None
        door.engine.cancel(job, "enough")
        assert watcher.events == [("fail", "enough")]
        assert worker.ask(f"HSET job:f:{number} output y status success") == b":0\r\n", "its late report is an error"
        assert fields(door, number, "status", "output") == [b"error", b"enough"]
        assert not door.door.ending


class TestProgress:
    @pytest.mark.parametrize(
        ("dividend", "divisor", "seen"),
        [
            ("1", "4", (1, 4)),
            ("0.25", "1", (250, 1000)),
            ("4611686018427387904", "9223372036854775808", (2**29, 2**30)),
            ("9223372036854775807", "1", (2**30, 0)),
            ("1e3", "-0", (1000, 0)),
        ],
    )
    def test_kept_as_written(
        self, door: Bench, worker: DoorPeer, dividend: str, divisor: str, seen: tuple[int, int]
    ) -> None:
        """While the job runs and when it is over; other protocols see whole numbers."""
        number, watcher = popped(door, worker)
        worker.ask(f"HMSET job:f:{number} status:dividend {dividend} status:divisor {divisor}")
        expected = [dividend.encode(), divisor.encode()]
        assert fields(door, number, "status:dividend", "status:divisor") == expected
        assert watcher.events == [("progress", *seen)]
        worker.ask(f"HMSET job:f:{number} status success output y")
        assert fields(door, number, "status:dividend", "status:divisor") == expected

    @pytest.mark.parametrize("text", ["half", "nan", "inf", "-1"])
    def test_no_number(self, door: Bench, worker: DoorPeer, text: str) -> None:
        """Redis keeps any text; other protocols hear nothing of it."""
        number, watcher = popped(door, worker)
        assert worker.ask(f"HSET job:f:{number} status:dividend {text}") == b":1\r\n"
        assert fields(door, number, "status:dividend") == [text.encode()]
        assert watcher.events == []

    def test_too_long(self, worker: DoorPeer, door: Bench) -> None:
        number, _ = popped(door, worker)
        assert b"out of range" in worker.ask(f"HSET job:f:{number} status:dividend {'1' * 65}")

    def test_of_a_worker_of_another_door(self, door: Bench) -> None:
        number = door.submit()
        other = OtherWorker()
        door.engine.register(other, b"f")
        job = door.engine.claim(other)
        assert job is not None
        door.engine.progress(job, Progress(1, 2))
        assert fields(door, number, "status:dividend", "status:divisor") == [b"1", b"2"]
        door.engine.complete(other, job, b"y")
        assert fields(door, number, "status:dividend", "status:divisor", "output") == [b"1", b"2", b"y"]

    def test_dropped_with_the_attempt(self, door: Bench, worker: DoorPeer) -> None:
        number, _ = popped(door, worker)
        worker.ask("CLIENT GRACE 0", f"HSET job:f:{number} status:dividend 1 output y colour red")
        worker.close()
        assert fields(door, number, "status", "status:dividend", "output", "colour") == [b"idle", None, None, b"red"]


class SavingJournal(Journal):
    """Remembers the values that were saved."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}

    def save_value(self, name: str, value: bytes) -> None:
        self.values[name] = value


class TestOwnFields:
    def test_kept_with_the_job(self, door: Bench, worker: DoorPeer) -> None:
        number = int(door.ask("INCR uid:f")[1:])
        assert door.ask(f"HSET job:f:{number} status idle input x colour red") == b":3\r\n"
        door.ask(f"LPUSH queue:f:normal {number}")
        assert fields(door, number, "status", "input", "colour") == [b"idle", b"x", b"red"]
        assert door.ask(f"HSET job:f:{number} colour blue size large") == b":1\r\n", "nobody owns it yet"
        worker.ask("RPOP queue:f:normal")
        worker.ask(f"HMSET job:f:{number} status success output y seconds 3")
        names = ("status", "input", "output", "colour", "size", "seconds")
        assert fields(door, number, *names) == [b"success", b"x", b"y", b"blue", b"large", b"3"]
        door.ask(f"HSET job:f:{number} note after")
        assert fields(door, number, "note", "colour") == [b"after", b"blue"]
        assert not door.door.jobs.written

    def test_report_that_is_refused_writes_nothing(self, door: Bench) -> None:
        number = door.submit()
        assert b"is not yours" in door.ask(f"HSET job:f:{number} status success output y colour red")
        assert fields(door, number, "colour") == [None]

    def test_dead_job(self) -> None:
        with gearmonkey_door.opened(max_attempts=1) as door:
            number = door.submit()
            door.ask(f"HSET job:f:{number} colour red")
            door.ask("RPOP queue:f:normal")
            door.pass_time(gearmonkey_door.GRACE)
            assert number in door.engine.dead
            door.ask(f"HSET job:f:{number} size large")
            assert fields(door, number, "status", "colour", "size") == [b"error", b"red", b"large"]
            assert door.ask(f"DEL job:f:{number}") == b":1\r\n"
            assert not door.door.jobs.written

    @pytest.mark.parametrize("queued", [False, True])
    def test_bounds(self, door: Bench, queued: bool) -> None:
        number = door.submit() if queued else int(door.ask("INCR uid:f")[1:])
        many = " ".join(f"f{n} x" for n in range(written_fields.MOST_FIELDS))
        assert door.ask(f"HSET job:f:{number} {many}") == b":%d\r\n" % written_fields.MOST_FIELDS
        assert b"-ERR a job's hash has at most 64 fields" in door.ask(f"HSET job:f:{number} more x")
        assert door.ask(f"HSET job:f:{number} f1 y") == b":0\r\n"
        large = "x" * written_fields.MOST_BYTES
        assert b"have at most 65536 bytes" in door.ask(f"HSET job:f:{number} f1 {large}")
        assert fields(door, number, "f1", "more") == [b"y", None]

    def test_number_of_jobs(self, door: Bench) -> None:
        """Hashes of dead jobs that an operator has deleted make room."""
        door.door.jobs.written.most_jobs = 2
        numbers = [door.submit() for _ in range(3)]
        answers = [door.ask(f"HSET job:f:{number} colour red") for number in numbers]
        assert answers[:2] == [b":1\r\n"] * 2
        assert b"the hashes of unfinished jobs are full" in answers[2]
        door.ask(f"DEL job:f:{numbers[0]}")
        assert door.ask(f"HSET job:f:{numbers[2]} colour red") == b":1\r\n"

    def test_saved_for_the_next_start(self) -> None:
        journal = SavingJournal()
        with gearmonkey_door.opened(journal=journal) as door:
            kept, gone = door.submit(), door.submit()
            for number in (kept, gone):
                door.ask(f"HSET job:f:{number} colour \xff")
            job = door.engine.jobs.get(kept)
            assert job is not None
        with gearmonkey_door.opened(saved=journal.values, restored=[job]) as door:
            assert fields(door, kept, "colour") == ["\xff".encode()]
            assert len(door.door.jobs.written) == 1

    def test_saved_value_that_is_damaged(self) -> None:
        saved = {"gearmonkey-fields.0": b"[", "gearmonkey-fields.1": b"[1]", "gearmonkey-fields.2": b'[1,["x"]]'}
        with gearmonkey_door.opened(saved=saved) as door:
            assert len(door.door.jobs.written) == 0

    def test_deleted(self, door: Bench) -> None:
        number = door.submit()
        door.ask(f"HSET job:f:{number} colour red size large")
        assert door.ask(f"HDEL job:f:{number} colour colour shape") == b":1\r\n"
        assert b"cannot be taken away" in door.ask(f"HDEL job:f:{number} input")
        assert fields(door, number, "colour", "size") == [None, b"large"]


class TestScript:
    """EVALSHA with the date of the worker, which may be another than the server's."""

    SHA1 = "5231827cd49b540660ef44969b38cc858f157824"

    def due(self, peer: DoorPeer | Bench, date: float) -> bytes:
        return peer.ask(f"EVALSHA {self.SHA1} 1 queue:f:scheduled {date}")

    def schedule(self, door: Bench, time: float, function: str = "f") -> int:
        number = int(door.ask(f"INCR uid:{function}")[1:])
        door.ask(f"HMSET job:{function}:{number} status idle input x")
        assert door.ask(f"ZADD queue:{function}:scheduled {time} {number}") == b":1\r\n"
        return number

    def test_date_after_ours(self, door: Bench, worker: DoorPeer) -> None:
        later, sooner = self.schedule(door, door.now + 200), self.schedule(door, door.now + 100)
        self.schedule(door, door.now + 50, "other")
        assert self.due(worker, door.now + 99) == b"$-1\r\n"
        assert b"%d" % sooner in self.due(worker, door.now + 300)
        assert b"%d" % later in self.due(worker, door.now + 300)
        assert self.due(worker, door.now + 300) == b"$-1\r\n"
        assert door.engine.scheduled == 1
        assert worker.ask(f"HSET job:f:{sooner} status success output y") == b":1\r\n"

    def test_before_a_job_that_is_queued_with_high_priority(self, door: Bench, worker: DoorPeer) -> None:
        high = door.submit(queue="high")
        early = self.schedule(door, door.now + 100)
        assert b"%d" % early in self.due(worker, door.now + 100)
        assert b"%d" % high in worker.ask("RPOP queue:f:high")

    def test_date_before_ours(self, door: Bench, worker: DoorPeer) -> None:
        number = self.schedule(door, door.now - 100)
        assert self.due(worker, door.now - 101) == b"$-1\r\n"
        assert b"%d" % number in self.due(worker, door.now - 100)

    def test_ids_are_in_the_order_of_text(self, door: Bench, worker: DoorPeer) -> None:
        numbers = [self.schedule(door, door.now + 100) for _ in range(12)]
        popped = [int(self.due(worker, door.now + 100).split(b"\r\n")[-2]) for _ in numbers]
        assert popped == sorted(numbers, key=str)

    def test_paused_function(self, door: Bench, worker: DoorPeer) -> None:
        self.schedule(door, door.now + 100)
        door.engine.pause(b"f")
        assert self.due(worker, door.now + 100) == b"$-1\r\n"
        assert door.engine.scheduled == 1


class TestCounts:
    def test_function_without_workers(self, door: Bench) -> None:
        door.submit()
        assert door.ask("GET count:f") == b"$-1\r\n"
        door.ask("RPOP queue:f:normal")
        assert door.ask("GET count:f") == b"$-1\r\n"

    def test_worker_that_comes_and_goes(self, door: Bench, worker: DoorPeer) -> None:
        assert worker.ask("INCR count:f", "DECR count:f", "GET count:f") == b":1\r\n:0\r\n$1\r\n0\r\n"
        worker.close()
        assert door.ask("GET count:f") == b"$-1\r\n"

    def test_functions_of_one_connection_are_bounded(self, door: Bench, worker: DoorPeer) -> None:
        door.door.counts.most_functions = 2
        answer = worker.ask(*(f"INCR count:{number}" for number in (1, 2, 3, 1)))
        assert answer == b":1\r\n:1\r\n-ERR a connection can count the workers of 2 functions\r\n:2\r\n"


def test_large_hash_is_sent_piece_by_piece() -> None:
    """Another connection may write to it meanwhile."""
    with gearmonkey_door.opened(limits=Limits(turn=0.0)) as door:
        number = int(door.ask("INCR uid:f")[1:])
        payload = "x" * 300_000
        door.ask(f"HMSET job:f:{number} input {payload} status idle colour red")
        reader = door.peer()
        reader.connection.data_received(resp.request(b"HGETALL", b"job:f:%d" % number))
        assert b"colour" not in b"".join(reader.connection.out), "the answer was made in one piece"
        door.ask(f"HSET job:f:{number} size large")
        expected = resp.encode({b"input": payload.encode(), b"status": b"idle", b"colour": b"red"}, 2)
        for _ in range(10):
            door.turn()
        assert reader.transport.written == expected


def test_fields_of_a_dump(door: Bench) -> None:
    """They are loaded if their job is here, and replace others only on demand."""
    number = door.submit()
    written = written_fields.WrittenFields(door.engine, {})
    value = b'[%d,{"colour":"red"}]' % number
    assert written.load("gearmonkey-fields.0", b'[999,{"colour":"red"}]', replace=True) == (False, False)
    assert written.load("gearmonkey-fields.0", value, replace=False) == (True, False)
    assert written.load("gearmonkey-fields.0", value.replace(b"red", b"blue"), replace=False) == (False, True)
    found = written.get(number)
    assert found is not None
    assert found.own == {b"colour": b"red"}
    assert written.load("gearmonkey-fields.0", value.replace(b"red", b"blue"), replace=True) == (True, True)
    assert found.own == {b"colour": b"blue"}
