"""The table of settings: flags, environment variables, settings file and documentation are made from it.

The name of a field is its TOML key; `max_packet` is also the flag `--max-packet` and the environment variable
`GEARTRAIN_MAX_PACKET`. `load.py` reads them.

>>> Settings().max_attempts
10
>>> TABLE["max_packet"].flag, TABLE["max_packet"].variable, TABLE["max_packet"].shown_default
('--max-packet', 'GEARTRAIN_MAX_PACKET', '64MiB')
"""

import os
import typing
from typing import Annotated, Any, NamedTuple

import msgspec

from geartrain.address import TLS_SCHEMES, Address
from geartrain.errors import SettingsError
from geartrain.model import Expiry
from geartrain.server.config import types
from geartrain.server.config.types import ValueType
from geartrain.server.process import log
from geartrain.server.process.log_limiter import LINES_PER_PERIOD

PREFIX = "GEARTRAIN_"


class Description(NamedTuple):
    """What the table says about a setting besides its name and default."""

    group: str
    value_type: ValueType
    help: str
    empty_means: str = ""  # for people: the effect of an empty default


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings with their defaults."""

    listen: Annotated[
        tuple[Address, ...],
        Description(
            "Doors",
            types.ADDRESSES,
            "Listen on this URL; repeat it for more. A host name stands for all its addresses, `*` for every "
            "interface.",
            "every protocol's default port on 127.0.0.1",
        ),
    ] = ()
    danga_on_gearman_port: Annotated[
        bool,
        Description("Doors", types.FLAG, "Also accept Danga's protocol of 2005 on the Gearman addresses."),
    ] = False
    store: Annotated[
        str,
        Description(
            "Store",
            types.STORE,
            "Where background jobs are stored: `sqlite:///path/jobs.db`, or `memory`, which loses them at a stop.",
            "jobs.db in the state directory of the service or the user",
        ),
    ] = ""
    keep_records_for: Annotated[
        float, Description("Store", types.DURATION, "How long to keep the record of a job that is done or cancelled.")
    ] = 86400.0
    keep_records: Annotated[
        int, Description("Store", types.COUNT, "How many records of jobs that are done or cancelled to keep at most.")
    ] = 100_000
    keep_failed_for: Annotated[
        float, Description("Store", types.DURATION, "How long to keep the record of a job that failed.")
    ] = 7 * 86400.0
    keep_failed: Annotated[
        int, Description("Store", types.COUNT, "How many records of jobs that failed to keep at most.")
    ] = 10_000
    keep_dead_for: Annotated[
        float,
        Description(
            "Store", types.DURATION, "Delete dead jobs after this time; 0 means that they stay until somebody acts."
        ),
    ] = 0.0
    keep_dead: Annotated[
        int, Description("Store", types.COUNT, "How many dead jobs to keep at most; 0 means all of them.")
    ] = 0
    result_limit: Annotated[
        int,
        Description(
            "Store",
            types.SIZE,
            "Keep results up to this size in the record of the job. Larger ones are kept whole too, but apart, and are "
            "read only when a client asks for them.",
        ),
    ] = 64 * 1024
    result_max: Annotated[
        int, Description("Store", types.SIZE, "Keep results whole up to this size; a larger one is cut.")
    ] = 16 * 1024 * 1024
    keep_results: Annotated[
        int,
        Description(
            "Store",
            types.SIZE,
            "How many bytes of results above `result_limit` to keep on disk, all together; the oldest are removed "
            "first.",
        ),
    ] = 1024**3
    keep_results_in_memory: Annotated[
        int, Description("Store", types.SIZE, "The same, where the store is `memory`.")
    ] = 64 * 1024 * 1024

    max_attempts: Annotated[
        int,
        Description(
            "Jobs",
            types.COUNT,
            "Mark a job dead, instead of retrying it, when its worker is lost after this many attempts; 0 means never.",
        ),
    ] = 10
    job_retries_zero: Annotated[
        str,
        Description(
            "Jobs",
            types.choice("unlimited", "none"),
            "What `--job-retries 0` of `geartrain gearmand` means: any number of retries, as in gearmand 1.1.20, or "
            "none, as in 2.0.0.",
        ),
    ] = "unlimited"
    handle_prefix: Annotated[
        str, Description("Jobs", types.HANDLE_PREFIX, "The prefix of job handles.", "`H:` and the host name")
    ] = ""
    job_timeout_unit: Annotated[
        str,
        Description(
            "Jobs",
            types.choice("milliseconds", "seconds"),
            "The unit of the timeouts that Gearman workers register with CAN_DO_TIMEOUT.",
        ),
    ] = "milliseconds"
    job_timeout_action: Annotated[
        Expiry, Description("Jobs", types.EXPIRY, "What to do with a job that exceeds its worker's timeout.")
    ] = Expiry.FAIL
    exceptions: Annotated[
        bool,
        Description(
            "Jobs",
            types.FLAG,
            "Send the exceptions of jobs to all Gearman clients, not only to those that have asked for them.",
        ),
    ] = False

    periodic_token: Annotated[
        str,
        Description(
            "Periodic",
            types.OPTIONAL_TEXT,
            "The token that Periodic peers must send when they connect.",
            "no token is needed",
        ),
    ] = ""
    periodic_quiet: Annotated[
        tuple[Address, ...],
        Description(
            "Periodic",
            types.ADDRESSES,
            "Do not confirm workers' requests on these addresses: for Node clients before 1.6.",
            "requests are confirmed on every address",
        ),
    ] = ()

    http_tokens: Annotated[
        tuple[str, ...],
        Description(
            "HTTP",
            types.WORDS,
            "Accept only requests with one of these tokens, written `SCOPE:TOKEN`; scopes are read, submit, work and "
            "admin, joined by `+`. Other users can see a command line: prefer the environment or a file.",
            "every request is accepted, and only this machine can connect",
        ),
    ] = ()
    http_tokens_file: Annotated[
        str,
        Description("HTTP", types.PATH, "A file with one such token per line.", "none"),
    ] = ""
    http_without_token: Annotated[
        bool,
        Description("HTTP", types.FLAG, "Let other machines connect by HTTP although no token is set."),
    ] = False
    http_hosts: Annotated[
        tuple[str, ...],
        Description(
            "HTTP",
            types.WORDS,
            "More host names that browsers may use for this server, by HTTP without a token and by WebSocket.",
            "localhost and the loopback addresses",
        ),
    ] = ()
    http_trusted_proxies: Annotated[
        tuple[str, ...],
        Description(
            "HTTP",
            types.NETWORKS,
            "Reverse proxies whose `X-Forwarded-Proto` and `X-Forwarded-For` are believed, as addresses or networks.",
            "none is believed",
        ),
    ] = ()
    memodb_origins: Annotated[
        tuple[str, ...],
        Description(
            "HTTP",
            types.ORIGINS,
            "Sites whose pages may open WebSockets (`memodb+ws`), such as `https://app.example`.",
            "pages of this server's own host and port",
        ),
    ] = ()
    http_worker_lease: Annotated[
        float,
        Description("HTTP", types.DURATION_ABOVE_ZERO, "Remove an HTTP worker that has sent nothing for this long."),
    ] = 60.0
    http_listeners: Annotated[
        int,
        Description(
            "HTTP", types.COUNT, "How many clients may follow events by HTTP at the same time; more are refused."
        ),
    ] = 1000
    http_listeners_per_client: Annotated[
        int,
        Description("HTTP", types.COUNT, "How many of these may have the same address; 0 means all of them."),
    ] = 500
    gearmand_http: Annotated[
        bool,
        Description(
            "HTTP",
            types.FLAG,
            "Answer gearmand's HTTP protocol too: a path that is neither the API's nor the dashboard's is a function. "
            "`geartrain gearmand --protocol http` sets it.",
        ),
    ] = False
    metrics_functions: Annotated[
        int,
        Description("HTTP", types.COUNT, "How many functions have metrics of their own; the others share one total."),
    ] = 1000

    control: Annotated[
        bool,
        Description(
            "Process",
            types.FLAG,
            "Answer jobs of the function `geartrain.control`, by which any client can inspect and control the server.",
        ),
    ] = True

    wake_count: Annotated[
        int, Description("Workers", types.COUNT, "How many sleeping workers a new job wakes; 0 means all of them.")
    ] = 1
    wake_grace: Annotated[
        float,
        Description(
            "Workers", types.DURATION, "Wake another worker if a woken one has not asked for a job in this time."
        ),
    ] = 0.05
    linger: Annotated[
        float,
        Description(
            "Workers",
            types.DURATION,
            'How long the answer "no job" to a busy Gearman worker is delayed, in case a job arrives; 0 means never.',
        ),
    ] = 0.001
    gearmonkey_grace: Annotated[
        float,
        Description(
            "Workers",
            types.DURATION,
            "How long a GearMonkey worker whose connection has closed keeps its jobs, in case it reports over another "
            "connection.",
        ),
    ] = 60.0
    memodb_heartbeat: Annotated[
        float,
        Description(
            "Workers", types.DURATION_ABOVE_ZERO, "Send a heartbeat to a MemoDB worker that had no job for this long."
        ),
    ] = 10.0
    memodb_worker_timeout: Annotated[
        float,
        Description(
            "Workers",
            types.DURATION_ABOVE_ZERO,
            "Remove a MemoDB worker that has not answered a heartbeat for this long.",
        ),
    ] = 10.0
    memodb_queue_timeout: Annotated[
        float,
        Description("Jobs", types.DURATION_ABOVE_ZERO, "Drop a MemoDB request that no worker has taken for this long."),
    ] = 10.0

    max_packet: Annotated[int, Description("Limits", types.SIZE, "Refuse packets that are larger than this.")] = (
        64 * 1024**2
    )
    max_functions: Annotated[
        int,
        Description(
            "Limits",
            types.COUNT_FROM_ONE,
            "Refuse to create more functions than this. Functions that nothing uses make room for new ones.",
        ),
    ] = 100_000
    forget_functions_after: Annotated[
        float,
        Description(
            "Limits",
            types.DURATION,
            "Forget a function that has had no jobs, workers, pause, limit or schedule for this long; 0 means never.",
        ),
    ] = 3600.0
    max_abilities: Annotated[
        int, Description("Limits", types.COUNT_FROM_ONE, "Refuse a worker's request to offer more functions than this.")
    ] = 10_000
    max_connections: Annotated[
        int,
        Description(
            "Limits",
            types.COUNT_FROM_ONE,
            "Refuse more connections than this, of all doors together. There are at most 64 fewer than the process may "
            "open files.",
        ),
    ] = 50_000
    max_queued_bytes: Annotated[
        int,
        Description(
            "Limits",
            types.SIZE,
            "Refuse jobs when the payloads of all jobs, and 512 bytes for each job, reach this size.",
            "half of the memory of the machine, or of its control group",
        ),
    ] = 0
    max_inflight_bytes: Annotated[
        int,
        Description(
            "Limits",
            types.SIZE,
            "Refuse a large packet that is still arriving if the incomplete packets of all peers exceed this.",
        ),
    ] = 1024**3
    write_limit: Annotated[
        int,
        Description("Limits", types.SIZE, "Disconnect a peer at once that leaves more than this many bytes unread."),
    ] = 256 * 1024**2
    slow_reader_timeout: Annotated[
        float,
        Description(
            "Limits",
            types.DURATION_ABOVE_ZERO,
            "Disconnect a peer that has more output waiting than the sockets hold, and reads nothing for this long.",
        ),
    ] = 60.0
    stall_timeout: Annotated[
        float,
        Description(
            "Limits",
            types.DURATION_ABOVE_ZERO,
            "Disconnect a peer that stops in the middle of a packet for this long.",
        ),
    ] = 60.0
    memodb_requests_per_pipe: Annotated[
        int,
        Description(
            "Limits",
            types.COUNT,
            "Stop reading from a MemoDB pipe while this many of its requests are unanswered; 0 means no limit.",
        ),
    ] = 100_000

    backlog: Annotated[
        int, Description("Sockets", types.COUNT_FROM_ONE, "How many new connections may wait to be accepted.")
    ] = 1024
    keepalive: Annotated[
        bool, Description("Sockets", types.FLAG, "Use TCP keepalive to detect peers that have disappeared.")
    ] = True
    # A dead peer is detected after idle + interval * count = 120 seconds. The system's default of two hours is too
    # long: a worker that has disappeared would hold its job all that time.
    keepalive_idle: Annotated[
        int, Description("Sockets", types.SYSTEM_SECONDS, "Seconds without traffic before the first keepalive probe.")
    ] = 60
    keepalive_interval: Annotated[
        int, Description("Sockets", types.SYSTEM_SECONDS, "Seconds between keepalive probes.")
    ] = 15
    keepalive_count: Annotated[
        int, Description("Sockets", types.SYSTEM_COUNT, "How many unanswered keepalive probes end a connection.")
    ] = 4

    users_file: Annotated[
        str,
        Description(
            "Access",
            types.PATH,
            "A TOML file with users: how each proves who it is, and what it may do.",
            "no users; peers have the rights of the address that they connect to",
        ),
    ] = ""

    trust_network: Annotated[
        bool,
        Description(
            "Access",
            types.FLAG,
            "Give peers of other machines that prove no identity all rights, as gearmand does, except to use the "
            "control function.",
        ),
    ] = False

    tls_certificate: Annotated[
        str,
        Description(
            "TLS",
            types.PATH,
            "The certificate chain (PEM) of addresses with TLS, such as gearmans://; without `listen` the default "
            "ports use TLS.",
            "no TLS",
        ),
    ] = ""
    tls_key: Annotated[
        str,
        Description("TLS", types.PATH, "The certificate's private key (PEM).", "the key is in the certificate's file"),
    ] = ""
    tls_ca: Annotated[
        str,
        Description(
            "TLS",
            types.PATH,
            "On addresses with TLS, accept only peers with a certificate that one of these authorities has signed "
            "(PEM).",
            "peers need no certificate",
        ),
    ] = ""

    log_file: Annotated[
        str, Description("Log", types.TEXT, "Write the log to `stderr`, `syslog`, `none` or a file with this path.")
    ] = "stderr"
    log_level: Annotated[
        str, Description("Log", types.choice(*log.LEVELS), "Log events of this level and of more serious ones.")
    ] = "info"
    log_format: Annotated[
        str,
        Description("Log", types.choice(*log.FORMATS), "Log lines of text, or one JSON object per line."),
    ] = "text"
    log_lines_per_peer: Annotated[
        int,
        Description(
            "Log",
            types.COUNT,
            "How many lines about one event that a host causes are written per minute; the others are counted. 0 means "
            "without limit.",
        ),
    ] = LINES_PER_PERIOD

    pid_file: Annotated[
        str, Description("Process", types.PATH, "Write the process id to this file while the server runs.", "none")
    ] = ""
    drain_timeout: Annotated[
        float,
        Description(
            "Process",
            types.DURATION,
            "How long a graceful stop waits for running jobs; 0 means without limit.",
        ),
    ] = 0.0


class Setting(NamedTuple):
    """A row of the table."""

    name: str
    default: Any
    group: str
    value_type: ValueType
    help: str
    empty_means: str

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()

    @property
    def shown_default(self) -> str:
        """The default for people: as they would write it, or what an empty one means."""
        return self.empty_means or self.value_type.show(self.default)


def _rows() -> dict[str, Setting]:
    hints = typing.get_type_hints(Settings, include_extras=True)
    defaults = Settings()
    return {
        name: Setting(name, getattr(defaults, name), *typing.get_args(annotation)[1])
        for name, annotation in hints.items()
    }


TABLE = _rows()


def check(settings: Settings) -> None:
    """Refuse settings that contradict each other."""
    for name in ("tls_key", "tls_ca"):
        if getattr(settings, name) and not settings.tls_certificate:
            raise SettingsError(f"{name} is set without tls_certificate, so there would be no TLS")
    encrypted = [address for address in settings.listen if address.tls]
    if encrypted and not settings.tls_certificate:
        raise SettingsError(f"{encrypted[0]} needs a certificate: set tls_certificate")
    if settings.tls_certificate and settings.listen and not encrypted:
        # Peers that are meant to be encrypted must not be served in plain text by an oversight.
        schemes = ", ".join(f"{scheme}://" for scheme in TLS_SCHEMES.values())
        raise SettingsError(f"tls_certificate is set, but no listen address uses TLS: write one with {schemes}")
    for address in settings.periodic_quiet:
        if settings.listen and address not in [listen._replace(may=None) for listen in settings.listen]:
            raise SettingsError(f"periodic_quiet has {address}, which is not one of the listen addresses")


def handle_prefix(settings: Settings) -> bytes:
    """The prefix of handles, cut so that a whole handle fits into the buffers of Gearman's libraries."""
    prefix = settings.handle_prefix or f"H:{os.uname().nodename}"
    return prefix.encode()[: types.PREFIX_LIMIT]
