"""Options: what each part of the server needs of the settings, in that part's own types."""

import os
import sys
from collections.abc import Callable, Sequence

import geartrain
from geartrain.address import DEFAULT_PORTS, PATH_SCHEMES, PEER, Address
from geartrain.cluster import reachability
from geartrain.cluster.cluster import ClusterOptions
from geartrain.doors.door import Limits, SocketOptions
from geartrain.doors.gearman.door import Options
from geartrain.doors.gearmonkey import door as gearmonkey
from geartrain.doors.http import door as http
from geartrain.doors.http import tokens
from geartrain.doors.memodb import door as memodb
from geartrain.doors.peer.door import Options as PeerOptions
from geartrain.doors.periodic import door as periodic
from geartrain.engine.policy import Policy
from geartrain.job_query import ENDED
from geartrain.model import JobState
from geartrain.server import peers
from geartrain.server.config import settings as settings_table
from geartrain.server.config.settings import Settings
from geartrain.server.process import machine
from geartrain.store.contract import Quota, ResultLimits, Retention
from geartrain.store.shared import Member, SharedStore


def policy(settings: Settings) -> Policy:
    return Policy(
        max_attempts=settings.max_attempts,
        failures=settings.failures,
        wake_count=settings.wake_count or sys.maxsize,  # the engine stops at the last sleeping worker anyway
        wake_grace=settings.wake_grace,
        max_functions=settings.max_functions,
        max_workflow_jobs=settings.max_workflow_jobs,
        max_abilities=settings.max_abilities,
        measured_functions=settings.metrics_functions,
        forget_functions_after=settings.forget_functions_after,
        max_queued_bytes=settings.max_queued_bytes or machine.memory_size() // 2,
    )


def limits(settings: Settings) -> Limits:
    return Limits(
        max_packet=settings.max_packet,
        write_limit=settings.write_limit,
        slow_reader_timeout=settings.slow_reader_timeout,
        max_inflight_bytes=settings.max_inflight_bytes,
        stall_timeout=settings.stall_timeout,
        worker_lease=settings.worker_lease,
    )


def sockets(settings: Settings) -> SocketOptions:
    return SocketOptions(
        backlog=settings.backlog,
        keepalive=settings.keepalive,
        keepalive_idle=settings.keepalive_idle,
        keepalive_interval=settings.keepalive_interval,
        keepalive_count=settings.keepalive_count,
    )


def gearman_options(settings: Settings) -> Options:
    return Options(
        exceptions=settings.exceptions,
        timeout_unit=settings.job_timeout_unit,
        timeout_action=settings.job_timeout_action,
        linger=settings.linger,
        # The gearmand version whose protocol this is, as its clients expect it, and our own.
        version=f"1.1.20+geartrain.{geartrain.__version__}",
    )


def periodic_options(settings: Settings) -> periodic.Options:
    return periodic.Options(token=settings.periodic_token, quiet=frozenset(settings.periodic_quiet))


def memodb_options(settings: Settings) -> memodb.Options:
    return memodb.Options(
        heartbeat=settings.memodb_heartbeat,
        worker_timeout=settings.memodb_worker_timeout,
        queue_timeout=settings.memodb_queue_timeout,
        requests_per_pipe=settings.memodb_requests_per_pipe,
        hosts=settings.http_hosts,
        origins=settings.memodb_origins,
    )


def gearmonkey_options(settings: Settings) -> gearmonkey.Options:
    return gearmonkey.Options(version=geartrain.__version__, grace=settings.gearmonkey_grace)


def http_tokens(settings: Settings) -> tokens.Tokens:
    """The tokens of the settings and of `http_tokens_file` as it is now; a StartError says what is wrong with them."""
    return tokens.read(settings.http_tokens, settings.http_tokens_file)


def http_options(settings: Settings, not_ready: Callable[[], str]) -> http.Options:
    return http.Options(
        tokens=http_tokens(settings),
        without_token=settings.http_without_token,
        hosts=settings.http_hosts,
        worker_lease=settings.http_worker_lease,
        trusted_proxies=settings.http_trusted_proxies,
        listeners=settings.http_listeners,
        listeners_per_client=settings.http_listeners_per_client,
        gearmand_http=settings.gearmand_http,
        exceptions=settings.exceptions,
        metrics_functions=settings.metrics_functions,
        not_ready=not_ready,
    )


def retention(settings: Settings) -> Retention:
    return Retention(
        done=Quota(settings.keep_records_for, settings.keep_records),
        failed=Quota(settings.keep_failed_for, settings.keep_failed),
    )


def dead_quota(settings: Settings) -> Quota | None:
    """None: there are no limits, and no need to look at dead jobs."""
    quota = Quota(settings.keep_dead_for, settings.keep_dead)
    return quota if quota.seconds or quota.most else None


def kept_seconds(settings: Settings, in_memory: bool) -> dict[JobState, float]:
    """How long jobs that ended in a state are kept; states without a limit of time are left out."""
    seconds = {JobState.DEAD: settings.keep_dead_for} if settings.keep_dead_for else {}
    if in_memory:  # records have only limits of number there
        return seconds
    seconds |= dict.fromkeys(ENDED, settings.keep_records_for)
    return seconds | {JobState.FAILED: settings.keep_failed_for}


def member(settings: Settings) -> Member:
    """What this server is to the others on a store that they share."""
    machine_id = reachability.this_machine()
    return Member(
        name=node_name(settings),
        machine=machine_id,
        handle_prefix=settings_table.handle_prefix(settings),
        lease=settings.lease,
        patience=settings.store_patience,
        is_gone=lambda node: reachability.refuses(node, machine_id),
    )


def cluster(settings: Settings) -> ClusterOptions:
    return ClusterOptions(
        name=node_name(settings),
        machine=reachability.this_machine(),
        lease=settings.lease,
        takeover_jobs=settings.takeover_jobs,
        unique_scope=settings.unique_scope,
    )


def node_name(settings: Settings) -> str:
    """The name of this server: that of the settings, or the host with the port of the first address."""
    if settings.node_name:
        return settings.node_name
    ports = (address.port for address in settings.listen if address.scheme not in (*PATH_SCHEMES, PEER))
    port = next(ports, 0) if settings.listen else DEFAULT_PORTS["gearman"]
    return f"{os.uname().nodename}:{port or os.getpid()}"


def link(settings: Settings, addresses: Sequence[Address]) -> str:
    """Where other servers reach this one: at its peer door, or where the settings say that this is found."""
    for address in addresses:
        if address.scheme == PEER:
            if settings.advertise:
                return f"{address.url_scheme}://{settings.advertise.rpartition('://')[2]}"
            host = os.uname().nodename if address.host in ("0.0.0.0", "::") else address.host
            return str(address._replace(host=host))
    return ""


def peer(settings: Settings, shared: SharedStore) -> PeerOptions:
    return PeerOptions(
        node=shared.node,
        name=node_name(settings),
        secret=shared.secret,
        grace=settings.link_grace,
        tls=lambda: peers.client_context(settings),
    )


def result_limits(settings: Settings) -> ResultLimits:
    return ResultLimits(
        inline=settings.result_limit,
        largest=settings.result_max,
        total=settings.keep_results,
        total_in_memory=settings.keep_results_in_memory,
        failed=settings.keep_failed_bytes,
        failed_in_memory=settings.keep_failed_bytes_in_memory,
    )
