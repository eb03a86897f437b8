"""The shared part of the PostgreSQL store in memory: nodes, ranges, jobs, keys and values, as the SQL treats them.

- A transaction locks the row of its node from the fence to its end (`store/postgresql_schema.py`, `fence`).
- Fencing compares the counter. If the row is locked by a transaction whose server does not go on, that is ended first
  (`store/postgresql_nodes.py`, `accuse`).
- A range is taken by one transaction: others skip it while it is locked, and see its new home afterwards (`take`).
- One node leads, by the unique index `nodes_leader`.

`Rules` says which of these hold, so that a test can break one of them.

Clusters of 1,000 servers need every statement to cost as much as it changes. What a statement would search for is
therefore kept at hand (who lives, who leads, which ranges have no home), and `problems` compares it with a whole scan.
"""

import bisect
import collections
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from geartrain.model import JobState
from geartrain.store.contract import Batch, CommitOutcome, Twin, whole_row
from geartrain.store.shared import FENCED, JOINING, LEFT, SERVING, ClusterView, FencedError, IdRange, Node, runs_of

NODE_BITS: Final = 32
FIRST_NODE: Final = 2**20
_LIVING: Final = (SERVING, JOINING)
_IDLE_SECONDS: Final = 10.0  # idle_in_transaction_session_timeout
_NONE: Final[set[int]] = set()

Row = tuple[Any, ...]
Snapshot = Callable[[int], ClusterView]  # what a look shows, by the version of the values that are known


class Rules(NamedTuple):
    """What the database does. A false one is a bug."""

    compares_counters: bool = True  # a node that has committed since it was seen is not fenced
    fences: bool = True  # a batch of a node that is fenced is refused
    rechecks_ranges: bool = True  # a range that was taken since the statement began is not taken again
    has_one_leader: bool = True
    compares_last: bool = True  # a batch is refused if the one before it is not there any more
    claims_lost_jobs: bool = True  # a job that only the server has which writes it again belongs to that one
    keeps_unread_rows: bool = True  # a whole batch removes none that its server has not restored yet


class CommittedError(Exception):
    """The fence: the node has a batch of this number already."""


class BehindError(Exception):
    """The fence: the database does not have the last commit of the node any more."""


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


class Ranges(dict[int, tuple[int, int]]):
    """The table `ranges`: the upper end and the node of each, by its lower end."""

    def __init__(self) -> None:
        super().__init__()
        self._lows: list[int] = []  # in order
        self._by_node: dict[int, set[int]] = {}

    def put(self, low: int, high: int, node: int) -> None:
        """Insert or update a row."""
        before = self.get(low)
        if before is None:
            bisect.insort(self._lows, low)
        else:
            self._by_node[before[1]].discard(low)
        self[low] = (high, node)
        self._by_node.setdefault(node, set()).add(low)

    def remove(self, low: int) -> None:
        self._by_node[self.pop(low)[1]].discard(low)
        del self._lows[bisect.bisect_left(self._lows, low)]

    def of(self, node: int) -> set[int]:
        """The lower ends of the ranges of a node."""
        return self._by_node.get(node, _NONE)

    def home_of(self, id: int) -> int:
        """The node whose range has this id; 0: nobody's."""
        place = bisect.bisect_right(self._lows, id)
        if not place:
            return 0
        high, node = self[self._lows[place - 1]]
        return node if id < high else 0

    def problems(self) -> list[str]:
        """What a whole scan finds otherwise than what is kept at hand."""
        by_node = {(node, low) for node, lows in self._by_node.items() for low in lows}
        is_right = self._lows == sorted(self) and by_node == {(node, low) for low, (_, node) in self.items()}
        return [] if is_right else ["ranges"]


class Saved(NamedTuple):
    """All tables, as they were at some time."""

    nodes: dict[int, Node]
    ranges: dict[int, tuple[int, int]]
    jobs: dict[int, Row]
    keys: dict[tuple[bytes, bytes], int]
    ended: set[int]
    values: dict[str, tuple[int, bytes]]
    version: int


class Database:
    """One schema."""

    def __init__(self, rules: Rules, time: Callable[[], float]) -> None:
        self.rules = rules
        self._time = time
        self.on_fenced: Callable[[int], object] = bool  # called with the node
        self.on_deleted: Callable[[set[int]], object] = bool  # called with jobs that a whole batch removes
        self.nodes: dict[int, Node] = {}
        self.ranges = Ranges()
        self.jobs: dict[int, Row] = {}
        self.keys: dict[tuple[bytes, bytes], int] = {}  # job by function and unique key
        self.values: dict[str, tuple[int, bytes]] = {}  # with their versions
        self.version = 0
        self.ended: set[int] = set()  # jobs that have records
        self.open: dict[int, Transaction] = {}  # by the node whose row they lock
        self.commits_at = 0.0  # until then nothing is committed, and everything can be read
        self.counts: collections.Counter[str] = collections.Counter()
        self.leaders: set[int] = set()  # that serve
        self.orphans: set[int] = set()  # lower ends of ranges that no living node has
        self._next_node = FIRST_NODE
        self._names: dict[str, int] = {}  # of nodes that live
        self._shown: dict[int, Node] = {}  # nodes that a look shows: that live or have a range
        self._ids: dict[int, set[int]] = {}  # of jobs, by the node that gave them out

    # Nodes

    def join(self, name: str, machine: str) -> Node:
        """`NodeTable.join`, after a namesake is gone."""
        id = self._next_node
        self._next_node += 1
        alone = not self._names
        state = SERVING if alone else JOINING
        self.ranges.put(id << NODE_BITS, (id + 1) << NODE_BITS, id)
        node = Node(id, name, "", machine, "1", 1, state, alone, False, 0, 0, 0.0, 0.0)
        self._put(node)
        return node

    def named(self, name: str) -> Node | None:
        id = self._names.get(name)
        return self.nodes[id] if id is not None else None

    def snapshot(self) -> Snapshot:
        """`NodeTable.look`, as of now, for whichever version is asked."""
        nodes = list(self._shown.values())
        saved, newest, orphans = list(self.values.items()), self.version, len(self.orphans)
        counts = self.counts
        counts["looks"] += 1
        counts["rows read"] += len(nodes) + len(self.ranges)

        def view(version: int) -> ClusterView:
            values = {name: value for name, (since, value) in saved if since > version}
            counts["rows read"] += len(values)
            return ClusterView(nodes, orphans, newest, values)

        return view

    def _put(self, node: Node) -> None:
        """Write the row of a node."""
        id = node.id
        before, self.nodes[id] = self.nodes.get(id), node
        if before is not None and before.state == node.state and before.leader == node.leader:
            if id in self._shown:  # a beat: only its counters have changed
                self._shown[id] = node
            return
        if node.leader and node.state == SERVING:
            self.leaders.add(id)
        else:
            self.leaders.discard(id)
        if node.state in _LIVING:
            self._names[node.name] = id
            self._shown[id] = node
            return
        if self._names.get(node.name) == id:
            del self._names[node.name]
            # A node that has rejoined an older database may live beside a newer one of its name.
            same = [n.id for n in self.nodes.values() if n.name == node.name and n.state in _LIVING]
            if same:
                self._names[node.name] = same[-1]
        self.orphans.update(self.ranges.of(id))
        self._show(id)

    def _show(self, id: int) -> None:
        """A node that is gone is shown as long as it has a range."""
        if id in self.nodes and not self.is_living(id):
            if self.ranges.of(id):
                self._shown[id] = self.nodes[id]
            else:
                self._shown.pop(id, None)

    def save(self) -> Saved:
        """What a standby has that hears nothing from now on."""
        return Saved(
            dict(self.nodes), dict(self.ranges), dict(self.jobs), dict(self.keys), set(self.ended), dict(self.values),
            self.version,
        )  # fmt: skip

    def go_back(self, saved: Saved) -> None:
        """That standby takes over. Numbers of nodes are not given out twice: sequences are ahead of their tables."""
        self.crash()
        self.nodes, self.ranges, self.leaders, self.orphans = {}, Ranges(), set(), set()
        self._names, self._shown, self._ids = {}, {}, {}
        for low, (high, home) in saved.ranges.items():
            self.ranges.put(low, high, home)
        for node in saved.nodes.values():
            self._put(node)
        self.orphans.update(low for low, (_, home) in self.ranges.items() if not self.is_living(home))
        self.jobs = {}
        for row in saved.jobs.values():
            self._write_job(row)
        self.keys, self.ended, self.values = dict(saved.keys), set(saved.ended), dict(saved.values)
        self.version = saved.version

    def has(self, handles: Iterable[bytes]) -> set[bytes]:
        """Those of these handles whose jobs are there."""
        return {row[1] for row in self.jobs.values()}.intersection(handles)

    def states(self, ids: Iterable[int]) -> dict[int, JobState]:
        """`PostgresqlStore.states`."""
        found = {id: JobState(self.jobs[id][6]) for id in ids if id in self.jobs}
        return found | {id: JobState.DONE for id in ids if id in self.ended}

    def rejoin(self, node: Node) -> None:
        """`NodeTable.reinsert`: the database is from before this node joined."""
        self.ranges.put(node.id << NODE_BITS, (node.id + 1) << NODE_BITS, node.id)
        self._put(node._replace(state=SERVING, leader=False, batch=0))

    def problems(self) -> list[str]:
        """What a whole scan finds otherwise than what is kept at hand."""
        homes = {home for _, home in self.ranges.values()}
        scans: dict[str, tuple[object, object]] = {
            "leaders": (self.leaders, {n.id for n in self.nodes.values() if n.leader and n.state == SERVING}),
            "orphans": (self.orphans, {low for low, (_, home) in self.ranges.items() if not self.is_living(home)}),
            "names": (self._names, {n.name: n.id for n in self.nodes.values() if n.state in _LIVING}),
            "shown": (self._shown, {n.id: n for n in self.nodes.values() if n.state in _LIVING or n.id in homes}),
            "ids": ({id for ids in self._ids.values() for id in ids}, set(self.jobs)),
        }
        return [name for name, (kept, scanned) in scans.items() if kept != scanned] + self.ranges.problems()

    def is_living(self, id: int) -> bool:
        node = self.nodes.get(id)
        return node is not None and node.state in _LIVING

    def accuse(self, seen: Node, is_late: bool = False) -> bool:
        """Fence a node, unless its counter has moved; a transaction that has locked its row is ended if it is stuck.

        If PostgreSQL has committed nothing for a while, this statement has waited too long for any transaction.
        """
        self.counts["accusations"] += 1
        transaction = self._locking(seen.id)
        if transaction is not None:
            if not (transaction.is_stuck() or is_late):
                return False  # it is committed while this statement waits, and the counter has moved
            self.rollback(transaction)
        node = self.nodes.get(seen.id, seen._replace(state=LEFT))
        if node.state not in _LIVING or (self.rules.compares_counters and node.batch != seen.batch):
            return False
        self._put(node._replace(state=FENCED, leader=False))
        self.counts["fenced"] += 1
        self.on_fenced(seen.id)
        return True

    def serve(self, id: int, link: str) -> None:
        node = self.nodes.get(id)
        if node is None or node.state not in _LIVING:
            raise FencedError(f"node {id} is fenced")
        self._put(node._replace(state=SERVING, link=link))

    def lead(self, id: int) -> bool:
        node = self.nodes.get(id)
        if node is None:
            return False
        if node.state == SERVING and not (self.leaders and self.rules.has_one_leader):
            node = node._replace(leader=True)
            self._put(node)
        return node.leader and node.state == SERVING

    def leave(self, id: int) -> None:
        node = self.nodes.get(id)
        if node is not None and node.state in _LIVING:
            self._put(node._replace(state=LEFT, leader=False))

    # Transactions

    def begin(self, id: int, number: int, last: int) -> Transaction | None:
        """Pass the fence; None if another transaction has locked the row."""
        if self._locking(id) is not None:
            return None
        node = self.nodes.get(id)
        if node is None:
            raise BehindError
        if self.rules.fences:
            if node.state in _LIVING and node.batch < last and self.rules.compares_last:
                raise BehindError
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
        self.ended |= ended
        ended.update(batch.removed_jobs, undone)
        for id in ended:
            self._remove(id)
        twins: dict[int, Twin] = {}
        if batch.is_whole:
            self._replace_all(transaction.node, batch, ended)
            batch = _changes_beside_jobs(batch)
        rows = {row[0]: row for row in map(whole_row, batch.accepted)}
        rows.update({row[0]: row for row in batch.changed if row[0] in rows})
        for row in rows.values():
            if row[0] not in ended:
                self._insert(row, twins)
        for row in batch.changed:
            if row[0] not in ended and row[0] not in rows:
                self._write_job(row)
        if batch.saved_values:
            self.version += 1
            self.values.update({name: (self.version, value) for name, value in batch.saved_values.items()})
        self.counts["commits" if batch else "beats"] += 1
        return CommitOutcome(twins, 0, self.version if batch.saved_values else 0)

    def _replace_all(self, node: int, batch: Batch, ended: set[int]) -> None:
        """`BatchWriter._delete_all`."""
        complete = [IdRange(node << NODE_BITS, (node + 1) << NODE_BITS), *(IdRange(*ids) for ids in batch.restored)]
        for ids in complete:
            present = [IdRange(low, self.ranges[low][0]) for low in sorted(self.ranges)]
            for gap in ids.parts_outside(present):
                self.ranges.put(gap.low, gap.high, node)
        own = sorted(self.own_ranges(node))
        rows: list[Row] = [row for row in batch.changed if row[0] not in ended]
        parts = [part for known in complete for ids in own if (part := known.part_in(ids)) is not None]
        mine = {id for ids in (parts if self.rules.keeps_unread_rows else own) for id in self.ids_between(*ids)}
        self.on_deleted(mine - {row[0] for row in rows})
        for id in mine:
            self._remove(id)
        elsewhere = [row[0] for row in rows if self.home_of(row[0]) != node and row[0] not in self.jobs]
        self._claim(node, elsewhere if self.rules.claims_lost_jobs else [])
        for row in rows:
            id, _, function, unique = row[:4]
            self._write_job(row)
            if unique:
                self.keys.setdefault((function, unique), id)
        self._show(node)
        self.counts["whole"] += 1

    def _claim(self, node: int, ids: list[int]) -> None:
        """`NodeTable.claim`."""
        runs = list(runs_of(ids))
        for low in sorted(self.ranges):
            high, home = self.ranges[low]
            around = IdRange(low, high)
            own = [part for run in runs if (part := run.part_in(around)) is not None]
            if own and home != node:
                is_orphan = low in self.orphans
                self.ranges.remove(low)
                self.orphans.discard(low)
                for part in around.parts_outside(own):
                    self.ranges.put(*part, home)
                    if is_orphan:
                        self.orphans.add(part.low)
                for part in own:
                    self.ranges.put(*part, node)
                self._show(home)

    def touch(self, transaction: Transaction) -> None:
        """Commit nothing (`BatchWriter.touch`)."""
        self._pass(transaction, 0)

    def lock_orphan(self, transaction: Transaction) -> int | None:
        """Lock the first range that no living node has, and that no other transaction has locked; its lower end."""
        locked = set()
        if self.orphans and self.rules.rechecks_ranges:
            holders = [self._locking(node) for node in list(self.open)]
            locked = {holder.low for holder in holders if holder is not None}
        transaction.low = min((low for low in self.orphans if low not in locked), default=-1)
        return transaction.low if transaction.low >= 0 else None

    def take(self, transaction: Transaction, most_jobs: int) -> IdRange | None:
        """Take the range that is locked, or its first part; `NodeTable.take`."""
        self._pass(transaction, 0)
        self.counts["takes"] += 1
        while transaction.low in self.ranges:
            low, (high, home) = transaction.low, self.ranges[transaction.low]
            ids = self.ids_between(low, high)
            if len(ids) > most_jobs:
                cut = ids[most_jobs]
                self.ranges.put(cut, high, home)
                if low in self.orphans:
                    self.orphans.add(cut)
                high = cut
            if ids:
                self._move(low, high, transaction.node)
                return IdRange(low, high)
            self.ranges.remove(low)
            self.orphans.discard(low)
            self._show(home)
            self.lock_orphan(transaction)
        return None

    def _move(self, low: int, high: int, node: int) -> None:
        """Give a range to a node that has passed its fence."""
        home = self.ranges[low][1]
        self.ranges.put(low, high, node)
        if self.is_living(node):
            self.orphans.discard(low)
        else:
            self.orphans.add(low)
        self._show(home)
        self._show(node)

    def ids_between(self, low: int, high: int) -> list[int]:
        """The jobs of a range. Ranges are parts of what one node has given out."""
        return sorted(id for id in self._ids.get(low >> NODE_BITS, ()) if low <= id < high)

    def own_ranges(self, node: int) -> set[IdRange]:
        return {IdRange(low, self.ranges[low][0]) for low in self.ranges.of(node)}

    def home_of(self, id: int) -> int:
        """The node whose range has this id; 0: nobody's."""
        return self.ranges.home_of(id)

    def _pass(self, transaction: Transaction, known: int) -> None:
        """The update of the node's row becomes visible."""
        self.rollback(transaction)
        node = self.nodes[transaction.node]
        seen = known if known > node.seen else node.seen
        self._put(Node(*node[:9], seen, max(transaction.number, node.batch), 0.0, 0.0))

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
        self._write_job(row)

    def _write_job(self, row: Row) -> None:
        id = row[0]
        self.jobs[id] = row
        self._ids.setdefault(id >> NODE_BITS, set()).add(id)

    def _remove(self, id: int) -> None:
        row = self.jobs.pop(id, None)
        if row is not None:
            self._ids[id >> NODE_BITS].discard(id)
        if row is not None and row[3] and self.keys.get((row[2], row[3])) == id:
            del self.keys[row[2], row[3]]


def _changes_beside_jobs(batch: Batch) -> Batch:
    """What a batch that is whole changes beside jobs."""
    rest = Batch()
    rest.finished, rest.saved_values = batch.finished, batch.saved_values
    return rest
