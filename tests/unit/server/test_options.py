"""Options: the settings reach the parts of the server. tests/acceptance/test_serve.py runs the parts together."""

import sys

import geartrain
from geartrain.doors.door import Limits, SocketOptions
from geartrain.engine.policy import Policy
from geartrain.model import Expiry
from geartrain.server import options
from geartrain.server.config.settings import Settings
from geartrain.server.process import log, machine
from geartrain.server.server import Server


def test_defaults_are_those_of_the_parts() -> None:
    """The table of settings and the classes of the parts must have the same defaults."""
    settings = Settings()
    # The engine alone keeps its functions for ever, and does not know the memory of the machine.
    server_only = Policy(forget_functions_after=3600.0, max_queued_bytes=machine.memory_size() // 2)
    assert options.policy(settings) == server_only
    assert options.limits(settings) == Limits()
    sockets = options.sockets(settings)
    assert (sockets.backlog, sockets.keepalive, sockets.tls) == (SocketOptions().backlog, True, None)


def test_every_setting_reaches_its_part() -> None:
    settings = Settings(
        max_attempts=3,
        wake_count=2,
        wake_grace=0.5,
        max_packet=1,
        write_limit=2,
        slow_reader_timeout=2.5,
        max_inflight_bytes=12,
        stall_timeout=3.0,
        backlog=4,
        keepalive=False,
        keepalive_idle=5,
        keepalive_interval=6,
        keepalive_count=7,
        exceptions=True,
        job_timeout_unit="seconds",
        job_timeout_action=Expiry.REQUEUE,
        linger=0.25,
        max_functions=8,
        max_workflow_jobs=12,
        max_abilities=9,
        max_queued_bytes=10,
        forget_functions_after=11.0,
    )
    assert options.policy(settings) == Policy(
        max_attempts=3,
        wake_count=2,
        wake_grace=0.5,
        max_functions=8,
        max_workflow_jobs=12,
        max_abilities=9,
        max_queued_bytes=10,
        forget_functions_after=11.0,
    )
    assert options.limits(settings) == Limits(
        max_packet=1, write_limit=2, slow_reader_timeout=2.5, max_inflight_bytes=12, stall_timeout=3.0
    )
    assert options.sockets(settings) == SocketOptions(4, False, 5, 6, 7, None)
    gearman = options.gearman_options(settings)
    assert (gearman.exceptions, gearman.timeout_unit, gearman.timeout_action, gearman.linger) == (
        True,
        "seconds",
        Expiry.REQUEUE,
        0.25,
    )
    assert gearman.version == f"1.1.20+geartrain.{geartrain.__version__}"


def test_waking_all_workers() -> None:
    assert options.policy(Settings(wake_count=0)).wake_count == sys.maxsize


def test_log_level_name_is_gearmands() -> None:
    with log.opened("none", "info", "text") as output:
        assert Server(Settings(log_level="notice", store="memory"), output).log_level_name == "NOTICE"
