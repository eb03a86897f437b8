"""The table of the outbox: the statements that create it, and a row of it."""

import secrets
from typing import Any, Final, NamedTuple

from geartrain.app.call import Call
from geartrain.client.order import PARTITION_FROM_UNIQUE, Order
from geartrain.model import Priority

NAME: Final = "geartrain_outbox"
CHANNEL: Final = NAME  # of PostgreSQL's LISTEN and NOTIFY

POSTGRESQL_TABLE: Final = """\
CREATE TABLE IF NOT EXISTS geartrain_outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    function bytea NOT NULL,
    payload bytea NOT NULL,
    priority smallint NOT NULL,
    unique_key bytea NOT NULL,
    own_key boolean NOT NULL,
    run_at double precision NOT NULL,
    expires_at double precision NOT NULL,
    keep_for double precision NOT NULL,
    timeout double precision NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    sends integer NOT NULL DEFAULT 0,
    refusals integer NOT NULL DEFAULT 0,
    refused text NOT NULL DEFAULT '',
    try_at timestamptz NOT NULL DEFAULT '-infinity'
)"""

SQLITE_TABLE: Final = """\
CREATE TABLE IF NOT EXISTS geartrain_outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    function BLOB NOT NULL,
    payload BLOB NOT NULL,
    priority INTEGER NOT NULL,
    unique_key BLOB NOT NULL,
    own_key INTEGER NOT NULL,
    run_at REAL NOT NULL,
    expires_at REAL NOT NULL,
    keep_for REAL NOT NULL,
    timeout REAL NOT NULL,
    created_at REAL NOT NULL DEFAULT ((julianday('now') - 2440587.5) * 86400.0),
    sends INTEGER NOT NULL DEFAULT 0,
    refusals INTEGER NOT NULL DEFAULT 0,
    refused TEXT NOT NULL DEFAULT '',
    try_at REAL NOT NULL DEFAULT 0
)"""

# What a program writes; the relay writes the others.
COLUMNS: Final = (
    "function", "payload", "priority", "unique_key", "own_key", "run_at", "expires_at", "keep_for", "timeout",
)  # fmt: skip


class OutboxRow(NamedTuple):
    """A row that a relay has claimed."""

    id: int
    order: Order
    own_key: bool  # the unique key was made for this row alone, so a job that has it is the job of this row
    sends: int  # how often a relay was about to send it, this time included
    refusals: int

    @property
    def in_doubt(self) -> bool:
        """Whether it may have been sent already, by a relay that did not live to delete the row."""
        return self.sends > 1


SELECTED: Final = ", ".join(("id", *COLUMNS, "sends", "refusals"))


def row_of(values: tuple[Any, ...]) -> OutboxRow:
    """A row of `SELECTED`."""
    id, function, payload, priority, unique, own_key, run_at, expires_at, keep_for, timeout, sends, refusals = values
    order = Order(
        function=bytes(function),
        payload=bytes(payload),
        background=True,
        priority=Priority(priority),
        unique=bytes(unique),
        run_at=run_at,
        timeout=timeout,
        expires_at=expires_at,
        keep_for=keep_for,
    )
    return OutboxRow(id, order, bool(own_key), sends, refusals)


def new_values(job: Call[Any] | Order) -> tuple[Any, ...]:
    """The values of `COLUMNS` for a new row. A job without a unique key gets one, by which it is recognised."""
    order = job.order() if isinstance(job, Call) else job
    if not order.background:
        raise ValueError("a job of the outbox runs in the background: nothing can wait for it in a transaction")
    if order.partition:
        raise ValueError(f"a job of the outbox has no partition: leave it out, and {PARTITION_FROM_UNIQUE}")
    if order.after:
        raise ValueError("a job of the outbox cannot wait for others: those may not be there when it is relayed")
    unique = order.unique or f"outbox-{secrets.token_hex(16)}".encode()
    return (
        order.function, order.payload, int(order.priority), unique, not order.unique, order.run_at, order.expires_at,
        order.keep_for, order.timeout,
    )  # fmt: skip
