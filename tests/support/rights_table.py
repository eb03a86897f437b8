"""Which right every request of every protocol needs.

tests/acceptance/test_rights_table.py tries out this table, and tools/rights_doc.py writes docs/rights-table.md from it.

A row is a request as its protocol writes it. Requests that need no right at all are in EVERYBODY: they greet, ask about
nothing but the server's presence, or concern only jobs that the peer has itself.
"""

from typing import NamedTuple

from geartrain.doors.http.routes import ROUTES
from geartrain.rights import ADMIN, READ, SCOPES, SUBMIT, WORK
from tests.support.periodic_peer import config, job, jobs, text

FUNCTION = "rights.table"
_NAME = FUNCTION.encode()

Scopes = tuple[str, ...]


class Row(NamedTuple):
    """A request and the scopes of which it needs one; `admin` is always enough."""

    door: str
    request: str
    scopes: Scopes
    arguments: tuple[bytes, ...] = ()
    ends_server: bool = False

    @property
    def name(self) -> str:
        """The request without its arguments."""
        return self.request.partition(" ")[0]

    def allows(self, scope: str) -> bool:
        return scope == ADMIN or scope in self.scopes


# How a peer is told that it may not; by door.
REFUSALS = {
    "gearman": "ERROR with `NOT_ALLOWED`, or `ERR NOT_ALLOWED` for a line",
    "danga": "an empty handle for a job, a closed connection for a worker",
    "periodic": "UNKNOWN; NO_WORKER or empty data for RUN_JOB; silence for SHUTDOWN",
    "memodb": "DISCONNECT for a worker; a job is dropped, the log says so, and a pipe that nothing else uses is closed",
    "gearmonkey": "an error reply that begins with `NOPERM`",
    "http": "403, or 401 where the client has no right at all",
}

_JOB = (_NAME, b"", b"")
_SUBMITS = {
    **dict.fromkeys(("SUBMIT_JOB", "SUBMIT_JOB_BG", "SUBMIT_JOB_HIGH", "SUBMIT_JOB_HIGH_BG"), _JOB),
    **dict.fromkeys(("SUBMIT_JOB_LOW", "SUBMIT_JOB_LOW_BG"), _JOB),
    "SUBMIT_JOB_SCHED": (_NAME, b"", b"0", b"0", b"1", b"1", b"0", b""),
    "SUBMIT_JOB_EPOCH": (_NAME, b"", b"4000000000", b""),
    **dict.fromkeys(("SUBMIT_REDUCE_JOB", "SUBMIT_REDUCE_JOB_BG"), (_NAME, b"", b"reducer", b"", b"")),
}
GEARMAN_PACKETS = (
    *(Row("gearman", name, (SUBMIT,), arguments) for name, arguments in _SUBMITS.items()),
    Row("gearman", "CAN_DO", (WORK,), (_NAME,)),
    Row("gearman", "CAN_DO_TIMEOUT", (WORK,), (_NAME, b"10")),
)
# {handle} stands for a queued job and {dead} for a dead one; for GearMonkey, {id} for a job that is not queued yet.
GEARMAN_LINES = tuple(
    Row("gearman", line, (scope,), ends_server=line.startswith("shutdown"))
    for line, scope in {
        "status": READ,
        "workers": READ,
        "prioritystatus": READ,
        "show jobs": READ,
        "show unique jobs": READ,
        "show dead jobs": READ,
        f"create function {FUNCTION}": ADMIN,
        f"maxqueue {FUNCTION} 1000": ADMIN,
        "cancel job {handle}": ADMIN,
        "retry job {dead}": ADMIN,
        "delete job {dead}": ADMIN,
        f"drop function {FUNCTION}": ADMIN,
        "shutdown": ADMIN,
        "shutdown graceful": ADMIN,
    }.items()
)
DANGA = (
    Row("danga", "job_create_req", (SUBMIT,), (_NAME + b"\0\0\0\1",)),
    Row("danga", "worker_connect", (WORK,), (_NAME,)),
)
_PERIODIC_JOB = job(_NAME, b"name")
PERIODIC = (
    Row("periodic", "SUBMIT_JOB", (SUBMIT,), (_PERIODIC_JOB,)),
    Row("periodic", "RUN_JOB", (SUBMIT,), (_PERIODIC_JOB,)),
    Row("periodic", "RECV_DATA", (SUBMIT,), (_PERIODIC_JOB,)),
    Row("periodic", "REMOVE_JOB", (SUBMIT,), (text(_NAME) + text(b"name"),)),
    Row("periodic", "CAN_DO", (WORK,), (text(_NAME),)),
    Row("periodic", "BROADCAST", (WORK,), (text(_NAME),)),
    Row("periodic", "STATUS", (READ,)),
    Row("periodic", "DUMP", (READ,)),
    Row("periodic", "CONFIG_GET", (READ,), (config(b"timeout"),)),
    Row("periodic", "CONFIG_SET", (ADMIN,), (config(b"timeout", 10),)),
    Row("periodic", "LOAD", (ADMIN,), (jobs(),)),
    Row("periodic", "DROP_FUNC", (ADMIN,), (text(b"rights.unknown"),)),
    Row("periodic", "SHUTDOWN", (ADMIN,), ends_server=True),
)
MEMODB = (
    Row("memodb", "JOB", (SUBMIT,)),
    Row("memodb", "READY", (WORK,)),
)
_ANY_USE = (SUBMIT, WORK, READ)
_QUEUE, _SCHEDULED, _KEY = f"queue:{FUNCTION}:normal", f"queue:{FUNCTION}:scheduled", f"job:{FUNCTION}:1"
_LOCK = f"lock:{FUNCTION}:1"
_SCRIPT = "5231827cd49b540660ef44969b38cc858f157824"
GEARMONKEY = tuple(
    Row("gearmonkey", command, scopes)
    for scopes, commands in {
        _ANY_USE: (
            f"GET count:{FUNCTION}", f"SET count:{FUNCTION} 0", f"INCR uid:{FUNCTION}", f"INCRBY uid:{FUNCTION} 1",
            f"DECR count:{FUNCTION}", f"DECRBY count:{FUNCTION} 1", f"HGET {_KEY} status", f"HMGET {_KEY} status",
            f"HGETALL {_KEY}", f"HEXISTS {_KEY} status", f"HLEN {_KEY}", f"HKEYS {_KEY}", f"TYPE {_KEY}",
            f"TTL {_KEY}", f"PTTL {_KEY}", f"LLEN {_QUEUE}", f"ZCARD {_SCHEDULED}", f"ZSCORE {_SCHEDULED} 1",
            f"EXISTS {_KEY}", f"SUBSCRIBE {_KEY}",
        ),
        (SUBMIT, WORK): (
            f"HMSET {_KEY} field value", f"HSET {_KEY} field value", f"HDEL {_KEY} field", f"LPUSH {_LOCK} 1",
            f"RPUSH {_LOCK} 1", f"LPOP {_LOCK}", f"RPOP {_LOCK}", f"BLPOP {_LOCK} 0.01", f"BRPOP {_LOCK} 0.01",
            f"EXPIRE {_KEY} 10", f"PEXPIRE {_KEY} 10", f"PERSIST {_KEY}", f"PUBLISH {_KEY} event",
        ),
        (SUBMIT,): (
            f"LPUSH {_QUEUE} {{id}}", f"RPUSH {_QUEUE} {{id}}", f"ZADD {_SCHEDULED} 4000000000 {{id}}",
        ),
        (WORK, READ): (f"LRANGE {_QUEUE} 0 -1", f"ZRANGE {_SCHEDULED} 0 -1", f"ZRANGEBYSCORE {_SCHEDULED} 0 1"),
        (WORK,): (
            f"LPOP {_QUEUE}", f"RPOP {_QUEUE}", f"BLPOP {_QUEUE} 0.01", f"BRPOP {_QUEUE} 0.01", f"LREM {_QUEUE} 0 1",
            f"ZREM {_SCHEDULED} 1", f"EVAL {_SCRIPT} 1 {_SCHEDULED} 0", f"EVALSHA {_SCRIPT} 1 {_SCHEDULED} 0",
        ),
        (READ,): ("KEYS *", "SCAN 0", "DBSIZE", "CLIENT LIST", "PSUBSCRIBE *"),
        (ADMIN,): (f"DEL {_KEY}", f"UNLINK {_KEY}"),
    }.items()
    for command in commands
)  # fmt: skip
HTTP = tuple(
    # Every client may submit a job of the control function; for others the engine asks.
    Row("http", f"{route.method} {route.path}", (SUBMIT,) if route.path.endswith("/v1/jobs") and route.method == "POST"
        else tuple(scope for scope in SCOPES if scope in route.scopes))
    for route in ROUTES
    if route.scopes
)  # fmt: skip

ROWS = (*GEARMAN_PACKETS, *GEARMAN_LINES, *DANGA, *PERIODIC, *MEMODB, *GEARMONKEY, *HTTP)

EVERYBODY: dict[str, tuple[str, ...]] = {
    "gearman": (
        "CANT_DO", "RESET_ABILITIES", "PRE_SLEEP", "GRAB_JOB", "GRAB_JOB_UNIQ", "GRAB_JOB_ALL", "ALL_YOURS",
        "WORK_STATUS", "WORK_DATA", "WORK_WARNING", "WORK_COMPLETE", "WORK_FAIL", "WORK_EXCEPTION", "GET_STATUS",
        "GET_STATUS_UNIQUE", "ECHO_REQ", "OPTION_REQ", "SET_CLIENT_ID", "auth", "version", "getpid", "verbose",
    ),
    "danga": (
        "worker_disconnect", "worker_sleep", "job_assign_req", "job_status_announce", "job_status_req",
        "job_complete_announce", "job_complete_req",
    ),
    "periodic": (
        "PING", "CANT_DO", "SLEEP", "GRAB_JOB", "WORK_DONE", "WORK_FAIL", "WORK_DATA", "SCHED_LATER", "ACQUIRE",
        "RELEASE", "JOB_ASSIGNED", "JOB_UNASSIGNED",
    ),
    "memodb": ("RESULT", "HEARTBEAT"),
    "gearmonkey": (
        "MULTI", "EXEC", "DISCARD", "WATCH", "UNWATCH", "SCRIPT", "UNSUBSCRIBE", "PUNSUBSCRIBE",
        "HELLO", "AUTH", "PING", "ECHO", "SELECT", "QUIT", "RESET", "INFO", "COMMAND", "CONFIG", "TIME",
    ),
    "http": tuple(f"{route.method} {route.path}" for route in ROUTES if not route.scopes),
}  # fmt: skip
