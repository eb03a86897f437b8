"""A server's store on the simulated database, with connections that get lost.

A call of the real store blocks its thread. Here a call that would have to wait raises `BlockedError`, and the simulated
thread makes the same call again when the time has come: the store remembers how far it was. So one call of `commit` is
many steps, between which other servers do something, and its machine may stop.
"""

import dataclasses
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol, TypeVar

from campaigns.membership.audit import Audit
from campaigns.membership.database import BehindError, CommittedError, Database, Snapshot, Transaction
from campaigns.membership.world import Machine
from geartrain.cluster.membership import Membership
from geartrain.errors import StoreError
from geartrain.model import JobState
from geartrain.runtime.work_thread import WorkThread
from geartrain.store import contract, rows
from geartrain.store.commit_numbers import CommitNumbers
from geartrain.store.shared import SERVING, ClusterView, FencedError, IdRange, Node, WentBackError

_FIRST_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 0.5

T = TypeVar("T")


class BlockedError(BaseException):
    """The call goes on after so many seconds. Not an Exception, as nobody but the thread may catch it."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class _LostError(Exception):
    """The connection is lost."""


class Network(Protocol):
    """Decides what becomes of messages."""

    def reaches(self, machine: Machine) -> bool:
        """Whether the machine can reach the database now."""

    def is_held(self, machine: Machine) -> bool:
        """Whether a pooler keeps what the machine sends until there is a database again."""

    def fate(self) -> str:
        """Of a transaction: one of `commits`, `slow`, `lost before`, `lost after`, `outlives`."""


@dataclasses.dataclass
class _Commit:
    """A commit from its first attempt to its end."""

    number: int
    started: float  # by the monotonic clock, like all times here
    began: float = 0.0  # the attempt
    pause: float = _FIRST_PAUSE
    transaction: Transaction | None = None  # that waits for its end
    is_sent: bool = False  # an attempt may have been carried out
    answer: Any = None  # of that attempt


class SimulatedStore:
    """What `PostgresqlStore` is to a server, without a PostgreSQL."""

    durable = True
    is_shared = True
    handle_prefix = b"H:sim"
    secret = b""

    def __init__(
        self, database: Database, machine: Machine, network: Network, audit: Audit, node: Node, patience: float
    ) -> None:
        self._audit = audit
        self._database = database
        self._machine = machine
        self._network = network
        self.node = node.id
        self.patience = patience
        self.renewed_at = machine.monotonic()
        self.in_doubt = {"committed": 0, "repeated": 0}
        self.resynced = 0
        self.waits_for_lock = False
        self.is_connected = True
        self.may_block = False  # a thread calls, which can wait
        self.attempt_began = self.renewed_at  # set by the thread
        self.snapshot: Callable[[], Snapshot] | None = None  # for the next look; None: it was lost
        self._numbers = CommitNumbers(node.id)
        self._node = node
        self._commit: _Commit | None = None  # that is under way
        self._lost_take: set[IdRange] | None = None
        self._before: set[IdRange] = set()

    def first_id(self) -> int:
        return (self.node << 32) + 1

    # The contract of every store

    def open(self) -> int:
        return self.first_id()

    def commit(self, batch: contract.Batch) -> contract.CommitOutcome:
        undone, is_repeated = self._numbers.undone, self._numbers.is_repeated
        accepted = [row[0] for row in batch.accepted]
        last = 0 if batch.is_whole else self._numbers.last

        def write(transaction: Transaction) -> contract.CommitOutcome:
            self._audit.writing(self.node, batch, undone, is_repeated)
            outcome = self._database.write(transaction, batch, undone)
            self._audit.wrote(self.node, outcome)
            return outcome

        return self._patiently(write, accepted, last=last)  # type: ignore[arg-type]

    def jobs(self, kind: type[contract.J]) -> Iterator[contract.J]:
        return iter(())

    def saved_values(self) -> dict[str, bytes]:
        return {name: value for name, (_, value) in self._database.values.items()}

    def prune(self, now: float, retention: contract.Retention) -> int:
        return 0

    def close(self, next_id: int) -> None:
        if self._network.reaches(self._machine):
            self._database.leave(self.node)

    # That of a store that is shared

    def look(self, version: int) -> ClusterView:
        """The snapshot that was taken on the way."""
        self._require_contact()
        snapshot, self.snapshot = self.snapshot, self._database.snapshot  # a second look sees what is there by then
        if snapshot is None:
            raise StoreError("the answer was lost")
        return snapshot()(version)

    def accuse(self, node: Node) -> bool:
        self._require_contact()
        self._require_commits(lambda: self._database.accuse(node, is_late=True))
        return self._database.accuse(node)

    def serve(self, link: str) -> None:
        self._require_contact()
        self._require_commits(lambda: None)
        self._database.serve(self.node, link)

    def lead(self) -> bool:
        self._require_contact()
        self._require_commits(lambda: None)
        return self._database.lead(self.node)

    def take(self, most_jobs: int) -> IdRange | None:
        if self._lost_take is not None:
            self._patiently(self._database.touch, None)
            ids = self._taken_since(self._lost_take)
            self._lost_take = None
            if ids is not None:
                return ids
        if self._commit is None:
            self._before = self._database.own_ranges(self.node)

        def take(transaction: Transaction) -> IdRange | None:
            return self._database.take(transaction, most_jobs)

        try:
            return self._patiently(take, None, self._database.lock_orphan)
        except StoreError:
            self._lost_take = self._before
            raise

    def jobs_of(self, ids: IdRange, kind: type[contract.J]) -> Iterator[list[contract.J]]:
        self._require_contact()
        found = self._database.ids_between(ids.low, ids.high)
        middle = len(found) // 2  # in two parts, between which the database may fail
        for part in (found[:middle], found[middle:]):
            self._require_contact()
            # Meanwhile others may have taken the range and ended some, if this server stood still.
            yield [rows.job(self._database.jobs[id], kind) for id in part if id in self._database.jobs]

    def states(self, ids: Sequence[int]) -> dict[int, JobState]:
        self._require_contact()
        return self._database.states(ids)

    def xmin_age(self) -> float:
        return 0.0

    def ask_to_drain(self, name: str) -> bool:
        raise NotImplementedError

    def fence_named(self, name: str) -> bool:
        raise NotImplementedError

    def change_locks(self, changes: Any) -> Any:
        raise NotImplementedError

    def lock_uses(self, names: Any) -> Any:
        raise NotImplementedError

    def records(self, query: contract.Query) -> list[contract.Record]:
        raise NotImplementedError

    def kept_result(self, record: contract.Record) -> bytes:
        raise NotImplementedError

    def job_log(self, id: int) -> bytes:
        raise NotImplementedError

    def payloads(self, ids: Any, longest: int) -> Any:
        raise NotImplementedError

    def ends(self, first: int, last: int) -> Any:
        raise NotImplementedError

    def failed_jobs(self, ids: Any, kind: Any, most_bytes: int) -> Any:
        raise NotImplementedError

    # Committing, as `PostgresqlStore._patiently` does it

    def _patiently(
        self,
        write: Callable[[Transaction], T],
        accepted: list[int] | None,
        prepare: Callable[[Transaction], object] | None = None,
        last: int | None = None,
    ) -> T:
        last = self._numbers.last if last is None else last
        commit = self._commit
        if commit is None:
            commit = self._commit = _Commit(self._numbers.begin(), self.attempt_began)
        try:
            answer = self._attempt(commit, write, prepare, last)
        except _LostError:
            self.is_connected = False
            if not self.may_block or self._machine.monotonic() - commit.started > self.patience:
                self._commit = None
                if commit.is_sent and accepted is not None:
                    self._numbers.give_up(accepted)
                raise StoreError("the database does not answer") from None
            pause, commit.pause = commit.pause, min(commit.pause * 2, _LONGEST_PAUSE)
            raise BlockedError(pause) from None
        except (FencedError, WentBackError):
            self._commit = None
            raise
        self._commit = None
        self._numbers.end(accepted is not None)
        self.renewed_at = commit.began
        return answer

    def _attempt(
        self,
        commit: _Commit,
        write: Callable[[Transaction], T],
        prepare: Callable[[Transaction], object] | None,
        last: int,
    ) -> T:
        transaction, commit.transaction = commit.transaction, None
        if transaction is None:
            commit.began = self.attempt_began
            if self._is_carried_out(commit, is_whole=last == 0):
                self.in_doubt["committed"] += 1
                commit.began = commit.started
                return commit.answer  # type: ignore[no-any-return]
            transaction = self._begin(commit, last)
            if prepare is not None:
                prepare(transaction)
            fate = self._network.fate() if self.may_block else "commits"
        else:
            fate = "commits"
        if not self._network.reaches(self._machine) or transaction.is_ended:
            self._database.rollback(transaction)
            raise _LostError
        if self._seconds_to_commits() > 0.0:
            if not self.may_block:
                self._database.rollback(transaction)
                raise _LostError
            commit.transaction = transaction
            raise BlockedError(self._seconds_to_commits() + self._machine.world.delay())
        return self._end(commit, transaction, fate, write)

    def _seconds_to_commits(self) -> float:
        return self._database.commits_at - self._machine.world.now

    def _require_commits(self, carry_out: Callable[[], object]) -> None:
        """A statement that hangs when it commits is given up here, and carried out when PostgreSQL commits again."""
        seconds = self._seconds_to_commits()
        if seconds > 0.0:
            self._machine.world.after(seconds + self._machine.world.delay(), carry_out)
            raise StoreError("the database does not commit")

    def _is_carried_out(self, commit: _Commit, is_whole: bool) -> bool:
        """On a new connection, find out first what became of the commits that were not answered."""
        if self.is_connected and self.may_block and self._network.is_held(self._machine):
            raise BlockedError(self._machine.world.delay())
        if not self._network.reaches(self._machine):
            raise _LostError
        if self.is_connected:
            return False
        node = self._database.nodes.get(self.node)
        if node is None:
            node = self._node._replace(state=SERVING, batch=0)
            self._database.rejoin(node)
        if self._numbers.is_carried_out(node.batch, node.state, is_whole):
            return True
        self.in_doubt["repeated"] += commit.is_sent
        self.is_connected = True
        return False

    def _begin(self, commit: _Commit, last: int) -> Transaction:
        try:
            transaction = self._database.begin(self.node, commit.number, last)
        except (CommittedError, BehindError):
            raise _LostError from None  # a new connection finds out
        except FencedError as error:
            node = self._database.nodes[self.node]
            raise FencedError(str(error), has_lost=node.batch < self._numbers.last) from None
        if transaction is None:  # the row is locked by a backend that has outlived its connection
            raise _LostError
        transaction.is_stuck = lambda: self._machine.paused_until > self._machine.world.now or not self._machine.is_up
        return transaction

    def _end(self, commit: _Commit, transaction: Transaction, fate: str, write: Callable[[Transaction], T]) -> T:
        world, database = self._machine.world, self._database
        if fate == "slow":
            commit.transaction = transaction
            raise BlockedError(world.delay())
        if fate == "lost before":
            database.rollback(transaction)
            raise _LostError
        if fate == "outlives":
            commit.is_sent = True

            def carry_out() -> None:
                if not transaction.is_ended:
                    commit.answer = write(transaction)

            world.after(world.chance.uniform(0.0, 0.3), carry_out)
            raise _LostError
        answer = write(transaction)
        if fate == "lost after":
            commit.is_sent, commit.answer = True, answer
            raise _LostError
        return answer

    def _taken_since(self, before: set[IdRange]) -> IdRange | None:
        return next((ids for ids in sorted(self._database.own_ranges(self.node)) if ids not in before), None)

    @property
    def is_reached(self) -> bool:
        return self._network.reaches(self._machine)

    def _require_contact(self) -> None:
        if not self._network.reaches(self._machine):
            raise StoreError("the database does not answer")


class SimulatedThread(WorkThread):
    """The committer's thread: each piece of work reaches the database a moment after it has begun."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_busy = False
        self._is_started = False
        self.store: SimulatedStore | None = None

    def start(self) -> None:
        self._is_started = True
        self._next()

    def put(self, work: Callable[[], None]) -> None:
        self._waiting.append(work)
        self._next()

    def end(self) -> None:
        pass

    def join(self) -> None:
        pass

    def _next(self) -> None:
        if self._is_started and not self._is_busy and self._waiting:
            self._is_busy = True
            self._begin_attempt(self._waiting.popleft())

    def _begin_attempt(self, work: Callable[[], None]) -> None:
        assert self.store is not None
        self.store.attempt_began = self._machine.monotonic()
        self._machine.world.after(self._machine.world.delay(), lambda: self._do(work), self._machine)

    def _do(self, work: Callable[[], None]) -> None:
        assert self.store is not None
        self.store.may_block = True
        try:
            work()
        except BlockedError as blocked:
            seconds = blocked.seconds / self._machine.rate
            self._machine.world.after(seconds, lambda: self._begin_attempt(work), self._machine)
            return
        self._is_busy = False
        self._next()


class SimulatedMembershipThread:
    """The membership's thread: the database takes a snapshot, and the answer arrives later."""

    def __init__(self, machine: Machine, database: Database, store: SimulatedStore, membership: Membership) -> None:
        self._machine = machine
        self._database = database
        self._store = store
        self._membership = membership
        self.pause = membership.pause
        self._is_stopped = False
        self._is_looking = False
        self._turn = 0  # a look that was planned before another one has begun is not made

    def start(self) -> None:
        self._begin(self._turn)

    def hurry(self) -> None:
        if not self._is_looking:
            self._turn += 1
            self._begin(self._turn)

    def stop(self) -> None:
        self._is_stopped = True

    def _begin(self, turn: int) -> None:
        if self._is_stopped or turn != self._turn:
            return
        self._is_looking = True
        world = self._machine.world
        to, back = world.delay(), world.delay()
        world.after(to, self._take_snapshot)
        world.after(to + back, self._look, self._machine)

    def _take_snapshot(self) -> None:
        snapshot = self._database.snapshot()
        self._store.snapshot = (lambda: snapshot) if self._store.is_reached else None

    def _look(self) -> None:
        self._is_looking = False
        if self._is_stopped:
            return
        self._membership.look()
        self._turn += 1
        turn = self._turn
        seconds = self.pause / self._machine.rate
        self._machine.world.after(seconds, lambda: self._begin(turn), self._machine)
