"""The JSON of a job that was just submitted, or that has just ended: the answer to nearly every request of POST /jobs.

It is what msgspec makes of `presentation.job_view`, byte for byte. But a view has 35 fields, half of which say nothing
about such a job, and to make it took longer than all the rest of a submission. So the bytes are put together here, and
only a job that has more to tell (progress, a failure, an expiry, a workflow) is left to the view. A test compares the
two for jobs of all kinds.
"""

from typing import Final

import msgspec

from geartrain import jsonbytes
from geartrain.admin import presentation
from geartrain.admin.views import PRIORITIES, SHOWN_BYTES, STATES
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import DEAD
from geartrain.engine.names import WORKFLOW

_encode: Final = msgspec.json.Encoder().encode
_NULL: Final = b"null"
_EMPTY: Final = b'""'
_STATES: Final = [state.encode() for state in STATES]
_PRIORITIES: Final = [priority.encode() for priority in PRIORITIES]
# For `bytes.translate`: changes every byte that does not stand for itself in a JSON string, and no other.
_PLAIN: Final = bytes(byte if 0x20 <= byte < 0x7F and byte not in b'"\\' else ord(" ") for byte in range(256))


class MomentText:
    """The JSON of a time. The last one is remembered, since the jobs of a tick share theirs."""

    __slots__ = ("_at", "_text")

    def __init__(self) -> None:
        self._at = 0.0
        self._text = _encode(0.0)

    def of(self, at: float) -> bytes:
        """The JSON of this time."""
        if at != self._at:
            self._at = at
            self._text = _encode(at)
        return self._text


# When a job was submitted and may run, which is mostly the same; when it started; when it ended.
_submission: Final = MomentText()
_start: Final = MomentText()
_end: Final = MomentText()


def submitted(job: LiveJob) -> bytes:
    """A job that was submitted."""
    if _has_more(job):
        return _encode(presentation.job_view(job, SHOWN_BYTES))
    return _joined(job, _NULL, _NULL, _NULL)


def ended(job: LiveJob, result: bytes | None, at: float) -> bytes:
    """A job that has ended at this time, with its whole result: of a foreground job, nothing is kept."""
    if _has_more(job):
        view = presentation.job_view(job, SHOWN_BYTES, result, at)
        return _encode(msgspec.structs.replace(view, result=None if result is None else jsonbytes.encode(result)))
    if result is None:
        return _joined(job, _end.of(at), _NULL, _NULL)
    return _joined(job, _end.of(at), string(result), b"%d" % len(result))


def string(data: bytes, longest: int = 0) -> bytes:
    """The JSON of bytes; `longest` cuts them, as in `jsonbytes.encode`."""
    if (longest and len(data) > longest) or data.translate(_PLAIN) != data:
        return _encode(jsonbytes.encode(data, longest))
    return b'"%b"' % data


def _has_more(job: LiveJob) -> bool:
    """Whether a field of the view that is constant here has another value."""
    return (
        job.rare is not None
        or job.progress is not None
        or job.owner is not None
        or job.is_cold
        or job.state is DEAD
        or job.function == WORKFLOW
    )


def _joined(job: LiveJob, finished_at: bytes, result: bytes, result_size: bytes) -> bytes:
    # Compiled, one join, since everything is bytes or an int.
    state: bytes = _STATES[job.state]
    payload_size: int = job.payload_size
    timeout: bytes = _encode(job.timeout) if job.timeout else b"0.0"
    return (
        b'{"id":%d,"handle":%b,"function":%b,"unique":%b,"state":"%b","priority":"%b","background":%b,"door":%b,'
        b'"submitted_at":%b,"run_at":%b,"started_at":%b,"finished_at":%b,"attempts":%d,"timeout":%b,"worker":"",'
        b'"worker_door":"","numerator":null,"denominator":null,"code":0,"reason":"","payload":%b,"payload_size":%d,'
        b'"result":%b,"result_size":%b,"trials":[],"result_kept":null,"user":%b,"expires_at":null,"keep_until":null,'
        b'"removed_at":null,"server":"","partition":%b,"waits_for":"","after":[],"workflow":null}'
    ) % (
        job.id,
        string(job.handle),
        string(job.function),
        string(job.unique) if job.unique else _EMPTY,
        state,
        _PRIORITIES[job.priority],
        b"true" if job.background else b"false",
        string(job.door.encode()),
        _submission.of(job.submitted_at),
        _submission.of(job.run_at),
        _start.of(job.started_at) if job.started_at else _NULL,
        finished_at,
        job.attempts,
        timeout,
        string(job.payload, SHOWN_BYTES),
        payload_size,
        result,
        result_size,
        string(job.user.encode()) if job.user else _EMPTY,
        string(job.partition) if job.partition else _EMPTY,
    )
