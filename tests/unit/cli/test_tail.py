"""The lines of `geartrain tail`."""

import datetime

from geartrain.cli import tail

EVENT = {
    "at": datetime.datetime(2026, 11, 15, 18, 30, 5, 250_000).timestamp(),
    "what": "failed",
    "handle": "H:lap:17",
    "function": {"base64": "/w=="},
    "door": "gearman",
    "worker": "mailer",
    "reason": "no such address",
}


def test_event() -> None:
    assert tail._line(EVENT) == "18:30:05.250  failed     H:lap:17  (1 byte)  gearman  mailer  no such address"


def test_event_without_worker_and_reason() -> None:
    assert tail._line({**EVENT, "worker": "", "reason": ""}).endswith("gearman")


def test_missed_events() -> None:
    assert tail._line({"missed": 1234}) == "(1,234 events left out)"
