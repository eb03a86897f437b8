"""Settings of the process: its limits, its log, and how it stops."""

import dataclasses
from typing import Annotated

from geartrain.server.config import types
from geartrain.server.config.types import Description
from geartrain.server.process import log
from geartrain.server.process.log_limiter import LINES_PER_PERIOD


@dataclasses.dataclass(frozen=True, kw_only=True)
class LimitSettings:
    """What peers may cost."""

    max_packet: Annotated[int, Description(types.SIZE, "Refuse packets that are larger than this.")] = 64 * 1024**2
    max_functions: Annotated[
        int,
        Description(
            types.COUNT_FROM_ONE,
            "Refuse to create more functions than this. Functions that nothing uses make room for new ones.",
        ),
    ] = 100_000
    max_workflow_jobs: Annotated[
        int, Description(types.COUNT_FROM_ONE, "Refuse workflows that have more jobs than this.")
    ] = 1_000_000
    forget_functions_after: Annotated[
        float,
        Description(
            types.DURATION,
            "Forget a function that has had no jobs, workers, pause, limit or schedule for this long; 0 means never.",
        ),
    ] = 3600.0
    max_abilities: Annotated[
        int, Description(types.COUNT_FROM_ONE, "Refuse a worker's request to offer more functions than this.")
    ] = 10_000
    max_connections: Annotated[
        int,
        Description(
            types.COUNT_FROM_ONE,
            "Refuse more connections than this, of all doors together. There are at most 64 fewer than the process may "
            "open files.",
        ),
    ] = 50_000
    max_queued_bytes: Annotated[
        int,
        Description(
            types.SIZE,
            "Refuse jobs when the payloads in memory of all jobs, and 512 bytes for each job, reach this size.",
            "half of the memory of the machine, or of its control group",
        ),
    ] = 0
    payload_memory: Annotated[
        int,
        Description(
            types.SIZE_OR_ZERO,
            "With a store in a file, keep about this much of the payloads of background jobs in memory, and read the "
            "others from the file before it is their turn; 0 means all are in memory.",
        ),
    ] = 256 * 1024**2
    max_inflight_bytes: Annotated[
        int,
        Description(
            types.SIZE,
            "Refuse a large packet that is still arriving if the incomplete packets of all peers exceed this.",
        ),
    ] = 1024**3
    write_limit: Annotated[
        int,
        Description(types.SIZE, "Disconnect a peer at once that leaves more than this many bytes unread."),
    ] = 256 * 1024**2
    slow_reader_timeout: Annotated[
        float,
        Description(
            types.DURATION_ABOVE_ZERO,
            "Disconnect a peer that has more output waiting than the sockets hold, and reads nothing for this long.",
        ),
    ] = 60.0
    stall_timeout: Annotated[
        float,
        Description(
            types.DURATION_ABOVE_ZERO,
            "Disconnect a peer that stops in the middle of a packet for this long.",
        ),
    ] = 60.0
    memodb_requests_per_pipe: Annotated[
        int,
        Description(
            types.COUNT,
            "Stop reading from a MemoDB pipe while this many of its requests are unanswered; 0 means no limit.",
        ),
    ] = 100_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class LogSettings:
    """What is logged, and where."""

    log_file: Annotated[
        str, Description(types.TEXT, "Write the log to `stderr`, `syslog`, `none` or a file with this path.")
    ] = "stderr"
    log_level: Annotated[
        str, Description(types.choice(*log.LEVELS), "Log events of this level and of more serious ones.")
    ] = "info"
    log_format: Annotated[
        str,
        Description(types.choice(*log.FORMATS), "Log lines of text, or one JSON object per line."),
    ] = "text"
    audit_file: Annotated[
        str,
        Description(
            types.PATH,
            "Append to this file who did what: operators' verbs, refused requests, logins, starts and stops.",
            "none; the newest 1,000 entries are in memory",
        ),
    ] = ""
    log_lines_per_peer: Annotated[
        int,
        Description(
            types.COUNT,
            "How many lines about one event that a host causes are written per minute; the others are counted. 0 means "
            "without limit.",
        ),
    ] = LINES_PER_PERIOD


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProcessSettings:
    """The process."""

    control: Annotated[
        bool,
        Description(
            types.FLAG,
            "Answer jobs of the function `geartrain.control`, by which any client can inspect and control the server.",
        ),
    ] = True
    pid_file: Annotated[
        str, Description(types.PATH, "Write the process id to this file while the server runs.", "none")
    ] = ""
    drain_timeout: Annotated[
        float,
        Description(
            types.DURATION,
            "How long a graceful stop waits for running jobs; 0 means without limit.",
        ),
    ] = 0.0
