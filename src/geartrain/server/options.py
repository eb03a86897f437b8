"""Options: what each part of the server needs of the settings, in that part's own types."""

import sys
from collections.abc import Callable

import geartrain
from geartrain.doors.door import Limits, SocketOptions
from geartrain.doors.gearman.door import Options
from geartrain.doors.gearmonkey import door as gearmonkey
from geartrain.doors.http import door as http
from geartrain.doors.http import tokens
from geartrain.doors.memodb import door as memodb
from geartrain.doors.periodic import door as periodic
from geartrain.engine.policy import Policy
from geartrain.job_query import ENDED
from geartrain.model import JobState
from geartrain.server.config.settings import Settings
from geartrain.server.process import machine
from geartrain.store.contract import Quota, ResultLimits, Retention


def policy(settings: Settings) -> Policy:
    return Policy(
        max_attempts=settings.max_attempts,
        failures=settings.failures,
        wake_count=settings.wake_count or sys.maxsize,  # the engine stops at the last sleeping worker anyway
        wake_grace=settings.wake_grace,
        max_functions=settings.max_functions,
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


def http_options(settings: Settings, not_ready: Callable[[], str]) -> http.Options:
    return http.Options(
        tokens=tokens.read(settings.http_tokens, settings.http_tokens_file),
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


def result_limits(settings: Settings) -> ResultLimits:
    return ResultLimits(
        inline=settings.result_limit,
        largest=settings.result_max,
        total=settings.keep_results,
        total_in_memory=settings.keep_results_in_memory,
        failed=settings.keep_failed_bytes,
        failed_in_memory=settings.keep_failed_bytes_in_memory,
    )
