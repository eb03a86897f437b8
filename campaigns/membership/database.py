"""The shared part of the PostgreSQL store in memory: nodes, ranges, jobs, keys and values, as the SQL treats them.

- A transaction locks the row of its node from the fence to its end (`store/postgresql_schema.py`, `fence`).
- Fencing compares the counter. If the row is locked by a transaction whose server does not go on, that is ended first
  (`store/postgresql_nodes.py`, `accuse`).
- A range is taken by one transaction: others skip it while it is locked, and see its new home afterwards (`take`).
- One node leads, by the unique index `nodes_leader`.

`Rules` says which of these hold, so that a test can break one of them.
"""

import collections
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from geartrain.store.contract import Batch, CommitOutcome, Twin
from geartrain.store.shared import FENCED, JOINING, LEFT, SERVING, ClusterView, FencedError, IdRange, Node

NODE_BITS: Final = 32
FIRST_NODE: Final = 2**20
_LIVING: Final = (SERVING, JOINING)
_IDLE_SECONDS: Final = 10.0  # idle_in_transaction_session_timeout

Row = tuple[Any, ...]
Snapshot = Callable[[int], ClusterView]  # what a look shows, by the version of the values that are known


class Rules(NamedTuple):
    """What the database does. A false one is a bug."""

    compares_counters: bool = True  # a node that has committed since it was seen is not fenced
    fences: bool = True  # a batch of a node that is fenced is refused
    rechecks_ranges: bool = True  # a range that was taken since the statement began is not taken again
    has_one_leader: bool = True


class CommittedError(Exception):
    """The fence: the node has a batch of this number already."""


class Transaction:
    """From the fence to its end."""

    __slots__ = ("began", "is_ended", "is_stuck", "low", "node", "number")

    def __init__(self, node: int, number: int, began: float) -> None:
        self.node = node
        self.number = number
        self.began = began
        self.is_ended = False  # committed, rolled back or terminated
        self.is_stuck: Callable[[], bool] = bool  # whether its server stands still
        self.low = -1  # of the range that it has locked


class Database:
    """One schema."""

    def __init__(self, rules: Rules, time: Callable[[], float], on_fenced: Callable[[int], None]) -> None:
        self.rules = rules
        self._time = time
        self._on_fenced = on_fenced
        self.nodes: dict[int, Node] = {}
        self.ranges: dict[int, tuple[int, int]] = {}  # high and node, by low
        self.jobs: dict[int, Row] = {}
        self.keys: dict[tuple[bytes, bytes], int] = {}  # job by function and unique key
        self.values: dict[str, tuple[int, bytes]] = {}  # with their versions
        self.version = 0
        self.open: dict[int, Transaction] = {}  # by the node whose row they lock
        self.counts: collections.Counter[str] = collections.Counter()
        self._next_node = FIRST_NODE
        self._homes: set[int] | None = None  # nodes that have a range; None: to be computed again, and so is
        self._orphans = 0

    # Nodes

    def join(self, name: str, machine: str) -> Node:
        """`NodeTable.join`, after a namesake is gone."""
        alone = not any(node.state in _LIVING for node in self.nodes.values())
        id = self._next_node
        self._next_node += 1
        state = SERVING if alone else JOINING
        self.nodes[id] = node = Node(id, name, "", machine, "1", 1, state, alone, False, 0, 0, 0.0, 0.0)
        self.ranges[id << NODE_BITS] = ((id + 1) << NODE_BITS, id)
        self._homes = None
        return node

    def named(self, name: str) -> Node | None:
        return next((node for node in self.nodes.values() if node.name == name and node.state in _LIVING), None)

    def snapshot(self) -> Snapshot:
        """`NodeTable.look`, as of now, for whichever version is asked."""
        homes = self._homes
        if homes is None:
            homes = self._homes = {home for _, home in self.ranges.values()}
            self._orphans = sum(not self.is_living(home) for _, home in self.ranges.values())
        nodes = [node for node in self.nodes.values() if node.state in _LIVING or node.id in homes]
        saved, newest, orphans = list(self.values.items()), self.version, self._orphans
        self.counts["looks"] += 1
        self.counts["rows read"] += len(nodes) + len(self.ranges)

        def view(version: int) -> ClusterView:
            values = {name: value for name, (since, value) in saved if since > version}
            self.counts["rows read"] += len(values)
            return ClusterView(nodes, orphans, newest, values)

        return view

    @property
    def orphans(self) -> int:
        return sum(not self.is_living(home) for _, home in self.ranges.values())

    def is_living(self, id: int) -> bool:
        node = self.nodes.get(id)
        return node is not None and node.state in _LIVING

    def accuse(self, seen: Node) -> bool:
        """Fence a node, unless its counter has moved; a transaction that has locked its row is ended if it is stuck."""
        self.counts["accusations"] += 1
        transaction = self._locking(seen.id)
        if transaction is not None:
            if not transaction.is_stuck():
                return False  # it is committed while this statement waits, and the counter has moved
            self.rollback(transaction)
        node = self.nodes[seen.id]
        if node.state not in _LIVING or (self.rules.compares_counters and node.batch != seen.batch):
            return False
        self.nodes[seen.id] = node._replace(state=FENCED, leader=False)
        self._homes = None
        self.counts["fenced"] += 1
        self._on_fenced(seen.id)
        return True

    def serve(self, id: int, link: str) -> None:
        node = self.nodes[id]
        if node.state not in _LIVING:
            raise FencedError(f"node {id} is fenced")
        self.nodes[id] = node._replace(state=SERVING, link=link)

    def lead(self, id: int) -> bool:
        node = self.nodes[id]
        has_leader = any(other.leader and other.state == SERVING for other in self.nodes.values())
        if node.state == SERVING and not (has_leader and self.rules.has_one_leader):
            self.nodes[id] = node = node._replace(leader=True)
        return node.leader and node.state == SERVING

    def leave(self, id: int) -> None:
        node = self.nodes[id]
        if node.state in _LIVING:
            self.nodes[id] = node._replace(state=LEFT, leader=False)
            self._homes = None

    # Transactions

    def begin(self, id: int, number: int) -> Transaction | None:
        """Pass the fence; None if another transaction has locked the row."""
        if self._locking(id) is not None:
            return None
        node = self.nodes[id]
        if self.rules.fences:
            if node.state not in _LIVING:
                raise FencedError(f"node {id} is fenced")
            if node.batch >= number:
                raise CommittedError
        self.open[id] = transaction = Transaction(id, number, self._time())
        return transaction

    def rollback(self, transaction: Transaction) -> None:
        if self.open.get(transaction.node) is transaction:
            del self.open[transaction.node]
        transaction.is_ended = True

    def crash(self) -> None:
        """Every connection ends. What is committed stays: the standby is synchronous."""
        for transaction in list(self.open.values()):
            self.rollback(transaction)

    def write(self, transaction: Transaction, batch: Batch, undone: list[int]) -> CommitOutcome:
        """Commit a batch (`BatchWriter.write`)."""
        self._pass(transaction, batch.known_node)
        ended = {record.id for record in batch.finished}
        ended.update(batch.removed_jobs, undone)
        for id in ended:
            self._remove(id)
        twins: dict[int, Twin] = {}
        rows = {row[0]: row for row in batch.accepted}
        rows.update({row[0]: row for row in batch.changed if row[0] in rows})
        for row in rows.values():
            if row[0] not in ended:
                self._insert(row, twins)
        for row in batch.changed:
            if row[0] not in ended and row[0] not in rows:
                self.jobs[row[0]] = row  # type: ignore[index]
        if batch.saved_values:
            self.version += 1
            self.values.update({name: (self.version, value) for name, value in batch.saved_values.items()})
        self.counts["commits" if batch else "beats"] += 1
        return CommitOutcome(twins, 0, self.version if batch.saved_values else 0)

    def touch(self, transaction: Transaction) -> None:
        """Commit nothing (`BatchWriter.touch`)."""
        self._pass(transaction, 0)

    def lock_orphan(self, transaction: Transaction) -> int | None:
        """Lock the first range that no living node has, and that no other transaction has locked; its lower end."""
        locked = {other.low for other in self.open.values()} if self.rules.rechecks_ranges else set()
        found = (low for low in sorted(self.ranges) if low not in locked and not self.is_living(self.ranges[low][1]))
        transaction.low = next(found, -1)
        return transaction.low if transaction.low >= 0 else None

    def take(self, transaction: Transaction, most_jobs: int) -> IdRange | None:
        """Take the range that is locked, or its first part; `NodeTable.take`."""
        self._pass(transaction, 0)
        self.counts["takes"] += 1
        self._homes = None
        while transaction.low in self.ranges:
            low, (high, _) = transaction.low, self.ranges[transaction.low]
            ids = sorted(id for id in self.jobs if low <= id < high)
            if len(ids) > most_jobs:
                self.ranges[ids[most_jobs]] = self.ranges[low]
                self.ranges[low] = (ids[most_jobs], transaction.node)
                return IdRange(low, ids[most_jobs])
            if ids:
                self.ranges[low] = (high, transaction.node)
                return IdRange(low, high)
            del self.ranges[low]
            self.lock_orphan(transaction)
        return None

    def own_ranges(self, node: int) -> set[IdRange]:
        return {IdRange(low, high) for low, (high, home) in self.ranges.items() if home == node}

    def home_of(self, id: int) -> int:
        """The node whose range has this id; 0: nobody's."""
        return next((home for low, (high, home) in self.ranges.items() if low <= id < high), 0)

    def _pass(self, transaction: Transaction, known: int) -> None:
        """The update of the node's row becomes visible."""
        self.rollback(transaction)
        node = self.nodes[transaction.node]
        self.nodes[node.id] = node._replace(batch=max(transaction.number, node.batch), seen=max(node.seen, known))

    def _locking(self, id: int) -> Transaction | None:
        transaction = self.open.get(id)
        if transaction is not None and self._time() - transaction.began > _IDLE_SECONDS:
            self.rollback(transaction)
            return None
        return transaction

    def _insert(self, row: Row, twins: dict[int, Twin]) -> None:
        id, _, function, unique = row[:4]
        if unique:
            twin = self.keys.setdefault((function, unique), id)
            if twin != id:
                twins[id] = Twin(twin, self.jobs[twin][1])
                return
        self.jobs[id] = row

    def _remove(self, id: int) -> None:
        row = self.jobs.pop(id, None)
        if row is not None and row[3] and self.keys.get((row[2], row[3])) == id:
            del self.keys[row[2], row[3]]
