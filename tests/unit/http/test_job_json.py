"""The JSON of a job that is put together from bytes is that of its view, byte for byte."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geartrain import escape, jsonbytes
from geartrain.admin import presentation, views
from geartrain.doors.http import job_json
from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Watcher
from geartrain.engine.job import LiveJob, Progress
from geartrain.engine.names import WORKFLOW
from geartrain.engine.worker import Worker
from geartrain.model import Priority
from geartrain.rights import SUBMIT, Identity, parse
from geartrain.usage import UserUsage

NOW = 1_700_000_000.25
TIMES = st.floats(0, 1e12, allow_nan=False) | st.sampled_from([0.0, 1e-7, 1e16, 1e22, 1_700_000_000.0])
NAMES = st.binary(min_size=1, max_size=20) | st.text(min_size=1, max_size=9).map(str.encode)
FUNCTIONS = NAMES.filter(lambda name: not escape.has_control_characters(name))
DATA = (
    st.binary(max_size=80)
    | st.text(max_size=80).map(str.encode)
    | st.sampled_from([b'"', b"\\", b"\x7f", b"\x00", b"</"])
)


class Sleeper(Worker):
    """Takes no job by itself."""

    def wake(self) -> None:
        """Leave it in the queue."""


class EndWatcher(Watcher):
    """Keeps what `job_json` and the view say when the job ends, as the door does."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[tuple[bytes, bytes]] = []

    def complete(self, job: LiveJob, result: bytes) -> None:
        self._compare(job, result)

    def fail(self, job: LiveJob, reason: str) -> None:
        self._compare(job, None)

    def exception(self, job: LiveJob, data: bytes) -> None:
        self._compare(job, data)

    def _compare(self, job: LiveJob, result: bytes | None) -> None:
        self.said.append((job_json.ended(job, result, NOW + 2), ended_view(job, result, NOW + 2)))


def submitted_view(job: LiveJob) -> bytes:
    """The general view, as msgspec writes it."""
    return msgspec.json.encode(presentation.job_view(job, views.SHOWN_BYTES))


def ended_view(job: LiveJob, result: bytes | None, at: float) -> bytes:
    """The same with the whole result."""
    view = presentation.job_view(job, views.SHOWN_BYTES, result, at)
    whole = None if result is None else jsonbytes.encode(result)
    return msgspec.json.encode(msgspec.structs.replace(view, result=whole))


def engine(now: float = NOW) -> Engine:
    made = Engine(handle_prefix=b"H:laptop")
    made.now = now
    return made


@given(
    st.fixed_dictionaries(
        {
            "name": FUNCTIONS,
            "unique": st.just(b"") | NAMES,
            "payload": DATA,
            "priority": st.sampled_from([int(priority) for priority in Priority]),
            "background": st.booleans(),
            "run_at": st.just(0.0) | TIMES,
            "door": st.sampled_from(["http", "gearman", 'a"b', ""]),
            "timeout": st.just(0.0) | TIMES,
            "keep_for": st.just(0.0) | TIMES,
            "expires_at": st.just(0.0) | TIMES,
            "partition": st.just(b"") | NAMES,
        }
    ),
    TIMES.filter(bool),
)
def test_a_submitted_job(fields: dict[str, Any], now: float) -> None:
    job = engine(now).submit(**fields)
    assert job_json.submitted(job) == submitted_view(job)


@pytest.mark.parametrize("size", [views.SHOWN_BYTES - 1, views.SHOWN_BYTES, views.SHOWN_BYTES + 1, 200_000])
@pytest.mark.parametrize("text", ["x", "ü", "\n"])
def test_a_large_payload_is_cut(size: int, text: str) -> None:
    job = engine().submit(b"f", payload=(text * size).encode()[:size])
    assert job_json.submitted(job) == submitted_view(job)


def test_a_job_of_a_user() -> None:
    made = engine()
    usage = UserUsage('an "Ü"')
    made.actor = Identity(usage.name, parse([SUBMIT]))
    made.actor.usage = usage
    job = made.submit(b"f", background=True)
    assert b'"user":"an \\"\xc3\x9c\\""' in job_json.submitted(job)
    assert job_json.submitted(job) == submitted_view(job)


def a_running_job(made: Engine, job: LiveJob) -> None:
    worker = Sleeper("gearman", b"w\xff")
    made.register(worker, job.function)
    assert made.claim(worker) is job


def a_job_with_progress(made: Engine, job: LiveJob) -> None:
    a_running_job(made, job)
    made.progress(job, Progress(1, 3))


def a_requeued_job(made: Engine, job: LiveJob) -> None:
    a_running_job(made, job)
    assert job.owner is not None
    made.remove_worker(job.owner)


def a_dead_job(made: Engine, job: LiveJob) -> None:
    made.policy.max_attempts = 1
    a_requeued_job(made, job)


def a_cold_job(made: Engine, job: LiveJob) -> None:
    job.chill(b"H:laptop:")


def a_stopped_job(made: Engine, job: LiveJob) -> None:
    made.cancel(job)


@pytest.mark.parametrize(
    "change", [a_running_job, a_job_with_progress, a_requeued_job, a_dead_job, a_cold_job, a_stopped_job]
)
@pytest.mark.parametrize("function", [b"f", WORKFLOW])
def test_a_job_that_has_more_to_tell(change: Callable[[Engine, LiveJob], None], function: bytes) -> None:
    """A submission with a unique key may be answered with a job in any state."""
    made = engine()
    job = made.submit(function, b"key", b'{"name":"w","jobs":[]}', background=True)
    change(made, job)
    assert job_json.submitted(job) == submitted_view(job)


@given(FUNCTIONS, DATA, DATA, st.sampled_from(["complete", "exception", "fail", "cancel", "progress"]))
def test_an_ended_job(function: bytes, payload: bytes, result: bytes, end: str) -> None:
    made, watcher, worker = engine(), EndWatcher(), Sleeper("gearman", b"w")
    job = made.submit(function, payload=payload, watcher=watcher)
    made.register(worker, function)
    made.now += 1
    assert made.claim(worker) is job
    if end == "progress":
        made.progress(job, Progress(1, 2))
    if end == "exception":
        made.raise_exception(worker, job, result)
    elif end == "fail":
        made.fail(worker, job)
    elif end == "cancel":
        made.cancel(job)
    else:
        made.complete(worker, job, result)
    [(said, expected)] = watcher.said
    assert said == expected


def test_times_are_not_confused() -> None:
    """More times than are remembered, each with its own text."""
    for number in range(200):
        job = engine(NOW + number).submit(b"f")
        assert job_json.submitted(job) == submitted_view(job)
