"""Every setting of the server, once: flags, environment, settings file and documentation follow from it.

The name of a field is its TOML key; `max_packet` is also the flag `--max-packet` and the environment variable
`GEARTRAIN_MAX_PACKET`. `sources.py` reads them.

>>> Settings().max_attempts
10
>>> TABLE["max_packet"].flag, TABLE["max_packet"].variable, TABLE["max_packet"].shown_default
('--max-packet', 'GEARTRAIN_MAX_PACKET', '64MiB')
"""

import os
import typing
from typing import Annotated, Any, NamedTuple

import msgspec

from geartrain.address import Address
from geartrain.errors import SettingsError
from geartrain.model import Expiry
from geartrain.server.config import types
from geartrain.server.config.types import ValueType
from geartrain.server.process import log

PREFIX = "GEARTRAIN_"


class About(NamedTuple):
    """What the table says about a setting besides its name, type and default."""

    group: str
    kind: ValueType
    help: str
    no_default: str = ""  # what happens when it is empty, where an empty default means something


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that can be set, with its default."""

    listen: Annotated[
        tuple[Address, ...],
        About(
            "Doors",
            types.ADDRESSES,
            "Open a door at this URL; repeat it for more. A name opens all its addresses, `*` every interface.",
            "every protocol's usual port on 127.0.0.1",
        ),
    ] = ()
    danga_on_gearman_port: Annotated[
        bool,
        About("Doors", types.FLAG, "Answer peers that speak Danga's draft of 2005 at the Gearman doors too."),
    ] = False
    store: Annotated[
        str,
        About(
            "Store",
            types.STORE,
            "Where background jobs are kept: `sqlite:///path/jobs.db`, or `memory` to forget them at the end.",
            "jobs.db in the state folder of the service or the user",
        ),
    ] = ""
    keep_records_for: Annotated[
        float, About("Store", types.DURATION, "How long it stays known what came of a finished job.")
    ] = 86400.0
    keep_records: Annotated[
        int, About("Store", types.COUNT, "Of how many finished jobs, at most, it stays known what came of them.")
    ] = 100_000
    result_limit: Annotated[int, About("Store", types.SIZE, "Keep so much of a finished job's result.")] = 64 * 1024

    max_attempts: Annotated[
        int,
        About("Jobs", types.COUNT, "Set a job aside as dead after this many lost workers; 0 means never."),
    ] = 10
    handle_prefix: Annotated[
        str, About("Jobs", types.HANDLE_PREFIX, "What job handles begin with.", "`H:` and the host's name")
    ] = ""
    job_timeout_unit: Annotated[
        str,
        About(
            "Jobs",
            types.choice("milliseconds", "seconds"),
            "The unit in which Gearman workers say how long their jobs may take (CAN_DO_TIMEOUT).",
        ),
    ] = "milliseconds"
    job_timeout_action: Annotated[
        Expiry, About("Jobs", types.EXPIRY, "What happens to a job that took longer than its worker allowed.")
    ] = Expiry.FAIL
    exceptions: Annotated[
        bool,
        About(
            "Jobs",
            types.FLAG,
            "Send Gearman clients their jobs' exceptions even if they did not ask for them.",
        ),
    ] = False

    periodic_token: Annotated[
        str,
        About(
            "Periodic",
            types.OPTIONAL_TEXT,
            "What Periodic peers have to show when they come in.",
            "everybody may come in",
        ),
    ] = ""
    periodic_quiet: Annotated[
        tuple[Address, ...],
        About(
            "Periodic",
            types.ADDRESSES,
            "Do not confirm workers' requests at these addresses: for Node clients before 1.6.",
            "they are confirmed everywhere",
        ),
    ] = ()

    http_tokens: Annotated[
        tuple[str, ...],
        About(
            "HTTP",
            types.WORDS,
            "Let in only who shows one of these, as `SCOPE:TOKEN`; scopes are read, submit, work and admin, with `+` "
            "between. Better in the environment or a file than on a command line, which others can see.",
            "who can reach it may do everything, and only this machine can reach it",
        ),
    ] = ()
    http_tokens_file: Annotated[
        str,
        About("HTTP", types.PATH, "The same, from a file with a token on each line.", "none"),
    ] = ""
    http_without_token: Annotated[
        bool,
        About("HTTP", types.FLAG, "Open the HTTP door to other machines although there is no token."),
    ] = False
    http_hosts: Annotated[
        tuple[str, ...],
        About(
            "HTTP",
            types.WORDS,
            "More names under which browsers may ask for this server, where no token is needed.",
            "localhost and the loopback addresses",
        ),
    ] = ()
    http_worker_lease: Annotated[
        float,
        About("HTTP", types.DURATION_ABOVE_ZERO, "Give up an HTTP worker that is silent for longer than this."),
    ] = 60.0
    http_listeners: Annotated[
        int, About("HTTP", types.COUNT, "How many may listen to events by HTTP at the same time; one more is refused.")
    ] = 1000
    metrics_functions: Annotated[
        int, About("HTTP", types.COUNT, "How many functions have metrics of their own; the rest is added up.")
    ] = 1000

    control: Annotated[
        bool,
        About(
            "Process",
            types.FLAG,
            "Answer jobs of the function `geartrain.control`: by them every client can see and steer the server.",
        ),
    ] = True

    wake_count: Annotated[
        int, About("Workers", types.COUNT, "How many sleeping workers a new job wakes; 0 means all of them.")
    ] = 1
    wake_grace: Annotated[
        float,
        About("Workers", types.DURATION, "Wake another worker when a woken one has not come for this long."),
    ] = 0.05
    linger: Annotated[
        float,
        About(
            "Workers",
            types.DURATION,
            "Hold the answer to a busy Gearman worker that finds no job, in case one comes; 0 means never.",
        ),
    ] = 0.001
    memodb_heartbeat: Annotated[
        float,
        About("Workers", types.DURATION_ABOVE_ZERO, "Send a MemoDB worker a heartbeat after so long without a job."),
    ] = 10.0
    memodb_worker_timeout: Annotated[
        float,
        About("Workers", types.DURATION_ABOVE_ZERO, "Give up a MemoDB worker that leaves a heartbeat unanswered."),
    ] = 10.0
    memodb_queue_timeout: Annotated[
        float,
        About("Jobs", types.DURATION_ABOVE_ZERO, "Drop a MemoDB request that no worker has taken for this long."),
    ] = 10.0

    max_packet: Annotated[int, About("Limits", types.SIZE, "Refuse a packet that is larger than this.")] = 64 * 1024**2
    write_limit: Annotated[
        int,
        About("Limits", types.SIZE, "Drop a peer that leaves this much of what it is sent unread."),
    ] = 64 * 1024**2
    stall_timeout: Annotated[
        float,
        About(
            "Limits",
            types.DURATION_ABOVE_ZERO,
            "Refuse a packet that has begun and stops arriving for this long.",
        ),
    ] = 60.0
    memodb_requests_per_pipe: Annotated[
        int,
        About(
            "Limits",
            types.COUNT,
            "Read no more from a MemoDB pipe while this many of its requests wait for an answer; 0 means no limit.",
        ),
    ] = 100_000

    backlog: Annotated[
        int, About("Sockets", types.COUNT_FROM_ONE, "How many new connections may wait to be accepted.")
    ] = 1024
    keepalive: Annotated[
        bool, About("Sockets", types.FLAG, "Have the system notice peers that vanished without a word.")
    ] = True
    # A dead peer is noticed after idle + interval * count = 120 seconds. The system's own two hours are too
    # long: all that while a vanished worker would keep its job.
    keepalive_idle: Annotated[
        int, About("Sockets", types.SYSTEM_SECONDS, "Seconds of silence before the first keepalive probe.")
    ] = 60
    keepalive_interval: Annotated[int, About("Sockets", types.SYSTEM_SECONDS, "Seconds between keepalive probes.")] = 15
    keepalive_count: Annotated[int, About("Sockets", types.SYSTEM_COUNT, "How many lost probes end a connection.")] = 4

    tls_certificate: Annotated[
        str,
        About("TLS", types.PATH, "Speak TLS at every door, with this certificate chain (PEM).", "no TLS"),
    ] = ""
    tls_key: Annotated[
        str,
        About("TLS", types.PATH, "The certificate's private key (PEM).", "it is in the certificate's file"),
    ] = ""
    tls_ca: Annotated[
        str,
        About(
            "TLS",
            types.PATH,
            "Admit only peers with a certificate that one of these authorities signed (PEM).",
            "every peer is admitted",
        ),
    ] = ""

    log_file: Annotated[
        str, About("Log", types.TEXT, "Write the log to `stderr`, `syslog`, `none` or the file of this path.")
    ] = "stderr"
    log_level: Annotated[str, About("Log", types.choice(*log.LEVELS), "Log this and everything more serious.")] = "info"
    log_format: Annotated[
        str,
        About("Log", types.choice(*log.FORMATS), "Log lines for people, or one JSON object per line."),
    ] = "text"

    pid_file: Annotated[
        str, About("Process", types.PATH, "Write the process id to this file while serving.", "none")
    ] = ""
    drain_timeout: Annotated[
        float,
        About(
            "Process",
            types.DURATION,
            "A graceful stop waits this long for running jobs; 0 means as long as it takes.",
        ),
    ] = 0.0


class Setting(NamedTuple):
    """A row of the table."""

    name: str
    about: About
    default: Any

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()

    @property
    def shown_default(self) -> str:
        """For people: the value as they would write it, or what its absence means."""
        return self.about.no_default or self.about.kind.show(self.default)


def _rows() -> dict[str, Setting]:
    hints = typing.get_type_hints(Settings, include_extras=True)
    defaults = Settings()
    return {name: Setting(name, typing.get_args(hint)[1], getattr(defaults, name)) for name, hint in hints.items()}


TABLE = _rows()


def check(settings: Settings) -> None:
    """Refuse settings that make no sense together."""
    for name in ("tls_key", "tls_ca"):
        if getattr(settings, name) and not settings.tls_certificate:
            raise SettingsError(f"{name} is set but tls_certificate is not: there would be no TLS")
    for address in settings.periodic_quiet:
        if settings.listen and address not in settings.listen:
            raise SettingsError(f"periodic_quiet names {address}, and there is no door: listen does not have it")


def handle_prefix(settings: Settings) -> bytes:
    """What handles begin with, short enough that a whole handle fits where Gearman's libraries keep it."""
    prefix = settings.handle_prefix or f"H:{os.uname().nodename}"
    return prefix.encode()[: types.PREFIX_LIMIT]
