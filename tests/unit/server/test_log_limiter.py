"""Log lines that peers cause are limited by event and host."""

import logging

import pytest

from geartrain.server.process import log_limiter
from geartrain.server.process.log_limiter import LINES_PER_PERIOD, PERIOD_SECONDS, EventKey, LineLimiter

OVER = PERIOD_SECONDS + 1


def record(event: str = "peer refused", peer: str = "10.0.0.1:5000", level: int = logging.WARNING) -> logging.LogRecord:
    fields = {"door": "gearman", "peer": peer} if peer else {}
    return logging.makeLogRecord({"msg": event, "levelno": level, "fields": fields})


def written(limiter: LineLimiter, count: int, now: float = 0.0, **fields: str) -> int:
    return sum(limiter.allows(record(**fields), now) for _ in range(count))


def test_lines_above_the_limit_are_counted() -> None:
    limiter = LineLimiter()
    assert written(limiter, LINES_PER_PERIOD + 7) == LINES_PER_PERIOD
    assert limiter.next_end() == PERIOD_SECONDS
    assert limiter.end_periods(PERIOD_SECONDS - 1) == []
    assert limiter.end_periods(OVER) == [(EventKey("peer refused", "gearman", "10.0.0.1"), 7)]
    assert limiter.next_end() is None
    assert limiter.left_out == 0
    assert written(limiter, 1, OVER) == 1


def test_connections_of_a_host_share_its_limit() -> None:
    limiter = LineLimiter()
    peers = [f"::1:{port}" for port in range(100)]
    assert sum(limiter.allows(record(peer=peer), 0.0) for peer in peers) == LINES_PER_PERIOD


def test_events_and_hosts_have_limits_of_their_own() -> None:
    limiter = LineLimiter()
    written(limiter, LINES_PER_PERIOD + 1)
    assert written(limiter, 1, peer="10.0.0.2:1") == 1
    assert written(limiter, 1, event="connection dropped") == 1
    assert written(limiter, 1) == 0


def test_what_no_peer_causes_is_not_limited() -> None:
    limiter = LineLimiter()
    assert written(limiter, 500, peer="") == 500
    assert all(limiter.allows(record(level=logging.DEBUG), 0.0) for _ in range(500))


def test_no_limit() -> None:
    assert written(LineLimiter(0), 500) == 500


def test_few_lines_leave_no_summary() -> None:
    limiter = LineLimiter()
    written(limiter, LINES_PER_PERIOD)
    assert limiter.next_end() is None
    assert limiter.end_periods(OVER) == []


def test_hosts_beyond_the_bound_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_limiter, "_MOST_KEYS", 3)
    limiter = LineLimiter()
    hosts = [f"10.0.0.{number}:1" for number in range(3 + LINES_PER_PERIOD + 5)]
    assert sum(limiter.allows(record(peer=host), 0.0) for host in hosts) == 3 + LINES_PER_PERIOD
    assert limiter.end_periods(OVER) == [(EventKey("peer refused", "gearman", "other hosts"), 5)]
