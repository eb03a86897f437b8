"""The contract of a store that several servers share, beyond that of every store.

A *node* is one start of a server; its number is never used again. Every id belongs to a *range*, and every range to a
node, the *home* of its jobs. A node that is gone is *fenced*: from then on nothing that it commits succeeds, and others
take its ranges. Each commit counts, so that the counter of a node shows that it lives.

`commit`, `take`, `prune` and `close` are called by the committer's thread. `look`, `accuse`, `serve`, `lead` and
`jobs_of` are called by the thread of the membership (`cluster/membership.py`), and use a connection of their own.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol, cast

from geartrain.errors import StoreError
from geartrain.model import JobState, LockChange, LockUse
from geartrain.store.contract import J, Store

# The range of ids that a node begins with has its number, shifted by so many bits.
NODE_BITS: Final = 32

# States of a node.
SERVING: Final = 0
LEFT: Final = 1
FENCED: Final = 2
JOINING: Final = 3
STATES: Final = {SERVING: "serving", LEFT: "left", FENCED: "fenced", JOINING: "joining"}


class FencedError(StoreError):
    """Others have taken this server for dead, and have its jobs: it must forget everything and begin anew.

    If the database has lost commits of this server before, the others have what is left of its jobs.
    """

    def __init__(self, text: str, has_lost: bool = False) -> None:
        super().__init__(text)
        self.has_lost = has_lost


class WentBackError(StoreError):
    """The database is in a state that it had before the last commits: all jobs of this server must be written again."""


def _never_gone(node: "Node") -> bool:
    return False


class Member(NamedTuple):
    """What a server says of itself, and how it shares its store."""

    name: str = ""  # no two servers of a cluster have the same
    machine: str = ""  # identifies the machine while it is up
    handle_prefix: bytes = b"H:geartrain"  # used by the first server of a cluster, for all
    lease: float = 10.0  # seconds after which a server that does not commit may be taken for dead
    patience: float = 60.0  # seconds for which a commit is repeated
    is_gone: "Callable[[Node], bool]" = _never_gone  # whether a server is certainly not there any more


class Node(NamedTuple):
    """One start of a server, as the store has it."""

    id: int
    name: str
    link: str  # an address at which the server can be reached; empty: none
    machine: str  # identifies the machine while it is up, so that loopback addresses can be told apart
    version: str
    layout: int
    state: int  # one of STATES
    leader: bool
    draining: bool  # an operator wants it to stop when its running jobs are done
    seen: int  # the newest node that it knows of
    batch: int  # the number of its last commit
    started_at: float  # epoch seconds
    beat_age: float  # seconds since its last commit, by the clock of the database; for people


class IdRange(NamedTuple):
    """Ids from `low` to below `high`."""

    low: int
    high: int

    def part_in(self, other: "IdRange") -> "IdRange | None":
        """The ids that are in both.

        >>> IdRange(10, 20).part_in(IdRange(15, 30)), IdRange(10, 20).part_in(IdRange(20, 30))
        (IdRange(low=15, high=20), None)
        """
        low, high = max(self.low, other.low), min(self.high, other.high)
        return IdRange(low, high) if low < high else None

    def parts_outside(self, others: "Iterable[IdRange]") -> "Iterator[IdRange]":
        """The ids that are in none of the others, which are in order.

        >>> list(IdRange(10, 40).parts_outside([IdRange(0, 12), IdRange(20, 30)]))
        [IdRange(low=12, high=20), IdRange(low=30, high=40)]
        """
        low = self.low
        for other in others:
            if low < other.low and low < self.high:
                yield IdRange(low, min(other.low, self.high))
            low = max(low, other.high)
        if low < self.high:
            yield IdRange(low, self.high)


def runs_of(ids: Iterable[int]) -> Iterator[IdRange]:
    """The ranges that consist of these ids, in order.

    >>> list(runs_of([8, 3, 1, 2]))
    [IdRange(low=1, high=4), IdRange(low=8, high=9)]
    """
    run: IdRange | None = None
    for id in sorted(ids):
        if run is not None and run.high != id:
            yield run
            run = None
        run = IdRange(id if run is None else run.low, id + 1)
    if run is not None:
        yield run


class ClusterView(NamedTuple):
    """What a look at the store shows."""

    nodes: list[Node]  # that are serving or joining, and those that are gone and whose jobs nobody has yet
    orphans: int  # how many ranges no living node has
    version: int  # of the newest saved value
    values: dict[str, bytes]  # that were saved since the version that was asked for, by anyone


class SharedStore(Store, Protocol):
    """A store that several servers share."""

    is_shared: bool  # true; other stores need not have it
    node: int  # of this server, from `open` on
    handle_prefix: bytes  # of all servers, from `open` on
    secret: bytes  # that only servers of this cluster know, from `open` on
    renewed_at: float  # when the last successful commit began, by the monotonic clock
    in_doubt: dict[str, int]  # how often the answer to a commit was lost, by what had become of it
    patience: float  # seconds for which a commit is repeated while the store does not answer
    resynced: int  # jobs that were written again, after the database went back in time
    waits_for_lock: bool  # a commit does not succeed because the transaction of another server has locked a row

    def look(self, version: int) -> ClusterView:
        """Read the nodes, and the values that were saved after `version`."""

    def accuse(self, node: Node) -> bool:
        """Fence a node, unless it has committed since it was seen with this counter; whether it is fenced."""

    def serve(self, link: str) -> None:
        """Tell the others that this node serves, and where it can be reached."""

    def lead(self) -> bool:
        """Become the leader, if there is none; whether this node is the leader now."""

    def take(self, most_jobs: int) -> IdRange | None:
        """Take a range that no living node has, or the first part of it, with about so many jobs."""

    def jobs_of(self, ids: IdRange, kind: type[J]) -> Iterator[list[J]]:
        """The jobs in a range of this node, in parts, as `Store.jobs` creates them."""

    def states(self, ids: Sequence[int]) -> dict[int, JobState]:
        """The states of those of these jobs of any server that have not ended, or have a record."""

    def xmin_age(self) -> float:
        """The age of the oldest transaction in the database, in seconds: what it may see cannot be cleaned up."""

    def change_locks(self, changes: Sequence[LockChange]) -> list[bool]:
        """Make these changes in this order, all or none; for each, whether the job got the lock or released it.

        A lock is granted to a job that has it already, and as long as fewer jobs of living nodes have it than the
        largest limit that one of them asked for. The same changes may be made again, after an error.
        """

    def lock_uses(self, names: Sequence[bytes]) -> dict[bytes, LockUse]:
        """The use of those of these locks that a job of a living node holds."""

    def ask_to_drain(self, name: str) -> bool:
        """Ask the node of that name to stop when its running jobs are done; whether there is one."""

    def fence_named(self, name: str) -> bool:
        """Fence the node of that name, alive or not; whether there is one. A StoreError if its row stays locked."""


def as_shared(store: Store) -> SharedStore | None:
    """The store as one that several servers share; None if it belongs to one server.

    Such a store says so by an attribute: `isinstance` cannot tell where the contract's module is compiled.
    """
    return cast(SharedStore, store) if getattr(store, "is_shared", False) else None
