"""How settings become the parts of a server. That the parts work together is tested on the installed command."""

import sys

import geartrain
from geartrain.doors.door import Limits, Socket
from geartrain.engine.policy import Policy
from geartrain.model import Expiry
from geartrain.server import options
from geartrain.server.config.settings import Settings
from geartrain.server.process import log
from geartrain.server.server import Server


def test_defaults_are_those_of_the_parts() -> None:
    """The table of settings and the rooms must not disagree about what nothing means."""
    settings = Settings()
    assert options.policy(settings) == Policy()
    assert options.limits(settings) == Limits()
    sockets = options.sockets(settings)
    assert (sockets.backlog, sockets.keepalive, sockets.tls) == (Socket().backlog, True, None)


def test_every_setting_reaches_its_part() -> None:
    settings = Settings(
        max_attempts=3,
        wake_count=2,
        wake_grace=0.5,
        max_packet=1,
        write_limit=2,
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
    )
    assert options.policy(settings) == Policy(max_attempts=3, wake_count=2, wake_grace=0.5)
    assert options.limits(settings) == Limits(max_packet=1, write_limit=2, stall_timeout=3.0)
    assert options.sockets(settings) == Socket(4, False, 5, 6, 7, None)
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


def test_log_level_in_gearmands_word() -> None:
    with log.opened("none", "info", "text") as journal:
        assert Server(Settings(log_level="notice", store="memory"), journal).log_level_name == "NOTICE"
