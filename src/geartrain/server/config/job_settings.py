"""Settings of jobs, of those that run them, and of the store."""

import dataclasses
from typing import Annotated

from geartrain.model import Expiry, FailureAction
from geartrain.server.config import types
from geartrain.server.config.types import Description


@dataclasses.dataclass(frozen=True, kw_only=True)
class StoreSettings:
    """What is stored, and for how long."""

    store: Annotated[
        str,
        Description(
            types.STORE,
            "Where background jobs are stored: `sqlite:///path/jobs.db`; `postgresql://user@host/database`, which "
            "several servers share; or `memory`, which loses them at a stop.",
            "jobs.db in the state directory of the service or the user",
        ),
    ] = ""
    keep_records_for: Annotated[
        float, Description(types.DURATION, "How long to keep the record of a job that is done, cancelled or expired.")
    ] = 86400.0
    keep_records: Annotated[
        int, Description(types.COUNT, "How many records of jobs that are done, cancelled or expired to keep at most.")
    ] = 100_000
    keep_failed_for: Annotated[
        float, Description(types.DURATION, "How long to keep the record of a job that failed.")
    ] = 7 * 86400.0
    keep_failed: Annotated[int, Description(types.COUNT, "How many records of jobs that failed to keep at most.")] = (
        10_000
    )
    keep_failed_bytes: Annotated[
        int,
        Description(
            types.SIZE,
            "How many bytes the payloads of failed jobs may have on disk, all together; the oldest are removed first.",
        ),
    ] = 1024**3
    keep_failed_bytes_in_memory: Annotated[int, Description(types.SIZE, "The same, where the store is `memory`.")] = (
        64 * 1024 * 1024
    )
    keep_dead_for: Annotated[
        float,
        Description(types.DURATION, "Delete dead jobs after this time; 0 means that they stay until somebody acts."),
    ] = 0.0
    keep_dead: Annotated[int, Description(types.COUNT, "How many dead jobs to keep at most; 0 means all of them.")] = 0
    result_limit: Annotated[
        int,
        Description(
            types.SIZE,
            "Keep results up to this size in the record of the job. Larger ones are kept whole too, but apart, and are "
            "read only when a client asks for them.",
        ),
    ] = 64 * 1024
    result_max: Annotated[int, Description(types.SIZE, "Keep results whole up to this size; a larger one is cut.")] = (
        16 * 1024 * 1024
    )
    keep_results: Annotated[
        int,
        Description(
            types.SIZE,
            "How many bytes of results above `result_limit` to keep on disk, all together; the oldest are removed "
            "first.",
        ),
    ] = 1024**3
    keep_results_in_memory: Annotated[int, Description(types.SIZE, "The same, where the store is `memory`.")] = (
        64 * 1024 * 1024
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class JobSettings:
    """What happens to jobs."""

    max_attempts: Annotated[
        int,
        Description(
            types.COUNT,
            "Mark a job dead, instead of retrying it, when its worker is lost after this many attempts; 0 means never.",
        ),
    ] = 10
    failures: Annotated[
        FailureAction,
        Description(
            types.FAILURES,
            "What becomes of a background job that failed: `keep` it whole with its record, so that it can be retried; "
            "make it a `dead` job; or `forget` its payload. `geartrain configure` sets it for one function.",
        ),
    ] = FailureAction.KEEP
    job_retries_zero: Annotated[
        str,
        Description(
            types.choice("unlimited", "none"),
            "What `--job-retries 0` of `geartrain gearmand` means: any number of retries, as in gearmand 1.1.20, or "
            "none, as in 2.0.0.",
        ),
    ] = "unlimited"
    handle_prefix: Annotated[
        str, Description(types.HANDLE_PREFIX, "The prefix of job handles.", "`H:` and the host name")
    ] = ""
    job_timeout_unit: Annotated[
        str,
        Description(
            types.choice("milliseconds", "seconds"),
            "The unit of the timeouts that Gearman workers register with CAN_DO_TIMEOUT.",
        ),
    ] = "milliseconds"
    job_timeout_action: Annotated[
        Expiry, Description(types.EXPIRY, "What to do with a job that exceeds its worker's timeout.")
    ] = Expiry.FAIL
    exceptions: Annotated[
        bool,
        Description(
            types.FLAG,
            "Send the exceptions of jobs to all Gearman clients, not only to those that have asked for them.",
        ),
    ] = False
    memodb_queue_timeout: Annotated[
        float,
        Description(types.DURATION_ABOVE_ZERO, "Drop a MemoDB request that no worker has taken for this long."),
    ] = 10.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class WorkerSettings:
    """How workers are woken, waited for and given up."""

    wake_count: Annotated[
        int, Description(types.COUNT, "How many sleeping workers a new job wakes; 0 means all of them.")
    ] = 1
    wake_grace: Annotated[
        float,
        Description(types.DURATION, "Wake another worker if a woken one has not asked for a job in this time."),
    ] = 0.05
    linger: Annotated[
        float,
        Description(
            types.DURATION,
            'How long the answer "no job" to a busy Gearman or danga worker is delayed, in case a job arrives; 0 means '
            "never.",
        ),
    ] = 0.001
    worker_lease: Annotated[
        float,
        Description(
            types.DURATION,
            "Disconnect a worker that sends heartbeats, as those of the Python library do, if it has jobs and was "
            "silent for this long; others get its jobs. 0 means never.",
        ),
    ] = 60.0
    gearmonkey_grace: Annotated[
        float,
        Description(
            types.DURATION,
            "How long a GearMonkey worker whose connection has closed keeps its jobs, in case it reports over another "
            "connection.",
        ),
    ] = 60.0
    memodb_heartbeat: Annotated[
        float,
        Description(types.DURATION_ABOVE_ZERO, "Send a heartbeat to a MemoDB worker that had no job for this long."),
    ] = 10.0
    memodb_worker_timeout: Annotated[
        float,
        Description(
            types.DURATION_ABOVE_ZERO,
            "Remove a MemoDB worker that has not answered a heartbeat for this long.",
        ),
    ] = 10.0
