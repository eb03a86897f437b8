"""What can happen to servers that share a PostgreSQL. Each fault is over, and everything runs again, when it returns.

A fault gets its own chance to choose a server and a moment. It happens while clients and workers are busy; nothing is
promised to them but that what was acknowledged is not lost.
"""

import contextlib
import random
import threading
from collections.abc import Callable, Iterator, Mapping

from tests.chaos.members import GRACE, LEASE, Fleet, Member
from tests.support import postgres
from tests.support.link_relay import Direction, LinkRelays
from tests.support.pgbouncer import PgBouncer
from tests.support.postgres_pair import Pair
from tests.support.postgres_proxy import Moment, commit, commit_answer, copy_data
from tests.support.waiting import wait_for

SHORT_PAUSE, LONG_PAUSE = 0.3 * LEASE, 1.5 * LEASE
LATEST = 0.6  # seconds: a server comes back as late as that after it was killed
DEAF = (0.5, 4.5)  # seconds: a link on which a server hears nothing is dropped after three

_never = threading.Event()


class Stage:
    """What a fault can act on. There is a cluster, or a pair; there may be a pooler in front of it, and relays."""

    def __init__(
        self,
        fleet: Fleet,
        chance: random.Random,
        cluster: postgres.Cluster | None = None,
        pair: Pair | None = None,
        pooler: PgBouncer | None = None,
        relays: LinkRelays | None = None,
    ) -> None:
        self.fleet = fleet
        self.chance = chance
        self._cluster = cluster
        self._pair = pair
        self._pooler = pooler
        self._relays = relays

    @property
    def cluster(self) -> postgres.Cluster:
        assert self._cluster is not None
        return self._cluster

    @property
    def pair(self) -> Pair:
        assert self._pair is not None
        return self._pair

    @property
    def pooler(self) -> PgBouncer:
        assert self._pooler is not None
        return self._pooler

    @property
    def relays(self) -> LinkRelays:
        """Between the servers."""
        assert self._relays is not None
        return self._relays

    def member(self) -> Member:
        return self.chance.choice(self.fleet.alive)


def pass_time(seconds: float) -> None:
    _never.wait(seconds)


def kill_server(stage: Stage) -> None:
    """Its name comes back before or after the others have noticed."""
    member = stage.member()
    member.kill()
    pass_time(stage.chance.uniform(0, LATEST))
    member.start()


def kill_all_servers(stage: Stage) -> None:
    """PostgreSQL alone knows what was acknowledged."""
    for member in stage.fleet.members:
        member.kill()
    for member in stage.chance.sample(stage.fleet.members, len(stage.fleet.members)):
        member.start()


def stop_server(stage: Stage) -> None:
    """Gracefully, as in an upgrade."""
    member = stage.member()
    member.stop()
    member.start()


def freeze_shortly(stage: Stage) -> None:
    member = stage.member()
    member.freeze()
    pass_time(SHORT_PAUSE)
    member.thaw()


def freeze_for_long(stage: Stage) -> None:
    """The others take it for dead meanwhile."""
    member = stage.member()
    with _until_fenced(stage, member):
        member.freeze()


def freeze_inside_copy(stage: Stage) -> None:
    """It holds its row in PostgreSQL, which waits for its data for ever."""
    member = stage.member()
    assert member.proxy is not None
    with _until_fenced(stage, member):
        member.proxy.stop_at(copy_data, member.freeze)
        member.proxy.wait_until_cut()


def cut_at_commit(stage: Stage) -> None:
    _cut(stage.member(), commit)


def cut_at_commit_answer(stage: Stage) -> None:
    """PostgreSQL has committed what the server cannot know."""
    _cut(stage.member(), commit_answer)


def outlive_connection(stage: Stage) -> None:
    """COMMIT arrives at PostgreSQL after the server has asked whether it did."""
    member = stage.member()
    assert member.proxy is not None
    member.proxy.cut_at(commit, outlive=True)
    member.proxy.wait_until_cut()
    pass_time(stage.chance.uniform(0, SHORT_PAUSE))
    member.proxy.release()


def cut_off_server(stage: Stage) -> None:
    """PostgreSQL is gone for one of them, and the others are not."""
    member = stage.member()
    member.faults += 1
    assert member.proxy is not None
    member.proxy.cut_off()
    pass_time(LONG_PAUSE)
    member.proxy.restore()


def cut_links_shortly(stage: Stage) -> None:
    """Jobs that were lent go on where they are."""
    _cut_links(stage, stage.chance.uniform(0, 0.8 * GRACE))


def cut_links_for_long(stage: Stage) -> None:
    """Jobs that were lent run again, and their first ends come too late."""
    _cut_links(stage, stage.chance.uniform(1.2 * GRACE, 3 * GRACE))


def one_way_links(stage: Stage) -> None:
    """One end of each link hears nothing, and the other one hears everything."""
    member, direction = stage.member(), stage.chance.choice(list(Direction))
    with _links_fail(stage, member):
        stage.relays.hold(member.name, direction)
        pass_time(stage.chance.uniform(*DEAF))


def kill_postmaster(stage: Stage) -> None:
    stage.cluster.kill()
    pass_time(stage.chance.uniform(0, LONG_PAUSE))
    stage.cluster.start()


def hold_commits(stage: Stage) -> None:
    """PostgreSQL can be read, and commits nothing for longer than a lease."""
    _hold_commits(stage.cluster)


def fail_over(stage: Stage) -> None:
    """The primary is gone at once; a standby takes its place."""
    stage.pair.fail_over()
    stage.pair.restore_standby()


def fail_over_behind(stage: Stage) -> None:
    """The standby that takes its place has not heard of the last commits."""
    stage.pair.leave_behind()
    pass_time(stage.chance.uniform(0, SHORT_PAUSE))
    fail_over(stage)


def fail_over_behind_and_hold(stage: Stage) -> None:
    """The same, and it commits nothing for longer than a lease: servers cannot write again what it lacks."""
    stage.pair.leave_behind()
    pass_time(stage.chance.uniform(0, SHORT_PAUSE))
    stage.pair.fail_over()
    _hold_commits(stage.pair.primary)
    stage.pair.restore_standby()


def restart_pooler(stage: Stage) -> None:
    stage.pooler.stop()
    pass_time(stage.chance.uniform(0, SHORT_PAUSE))
    stage.pooler.start()


Fault = Callable[[Stage], None]
FAULTS: Mapping[str, Fault] = {
    "kill -9 of a server": kill_server,
    "kill -9 of all servers": kill_all_servers,
    "graceful stop of a server": stop_server,
    "SIGSTOP of a server, 0.3 leases": freeze_shortly,
    "SIGSTOP of a server, 1.5 leases": freeze_for_long,
    "SIGSTOP of a server inside COPY": freeze_inside_copy,
    "connection cut before COMMIT": cut_at_commit,
    "connection cut after COMMIT": cut_at_commit_answer,
    "COMMIT that outlives its connection": outlive_connection,
    "server cut off from PostgreSQL": cut_off_server,
    "links of a server cut, at most 0.8 graces": cut_links_shortly,
    "links of a server cut, at least 1.2 graces": cut_links_for_long,
    "links of a server that pass one way": one_way_links,
    "kill -9 of the postmaster": kill_postmaster,
    "PostgreSQL that commits nothing": hold_commits,
}


def chosen(words: list[str]) -> dict[str, Fault]:
    """The faults with one of these words in their names; all without words."""
    found = {
        name: fault
        for name, fault in FAULTS.items()
        if not words or any(word.lower() in name.lower() for word in words)
    }
    assert found, f"no fault is called {' or '.join(words)}; there are: {', '.join(FAULTS)}"
    return found


def deck(names: list[str], chance: random.Random) -> Iterator[str]:
    """Faults without end. Each occurs once before any occurs again."""
    while True:
        yield from chance.sample(names, len(names))


@contextlib.contextmanager
def _until_fenced(stage: Stage, member: Member) -> Iterator[None]:
    """A server that is frozen in the block wakes up after 1.5 leases at the earliest, and when it has been fenced.

    A busy machine, or a row that the frozen server has locked, delays that: nothing says that it takes only a lease.
    """
    others = [other for other in stage.fleet.alive if other is not member]

    def fencings() -> int:
        return sum(other.times_fencing(member.name) for other in others)

    before, noticed = fencings(), member.times_fenced
    yield
    pass_time(LONG_PAUSE)
    try:
        wait_for(lambda: fencings() > before, f"somebody fences {member.name}")
    finally:
        member.thaw()
    if member.proxy is not None:
        member.proxy.resume()
    wait_for(lambda: member.times_fenced > noticed, f"{member.name} notices that it was fenced")


def _cut(member: Member, moment: Moment) -> None:
    assert member.proxy is not None
    member.proxy.cut_at(moment)
    member.proxy.wait_until_cut()


def _hold_commits(cluster: postgres.Cluster) -> None:
    """Commits wait for a standby that does not exist."""
    _wait_for_standby(cluster, "nobody")
    pass_time(LONG_PAUSE)
    _wait_for_standby(cluster, "")


def _wait_for_standby(cluster: postgres.Cluster, name: str) -> None:
    cluster.query(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
    cluster.query("SELECT pg_reload_conf()")


def _cut_links(stage: Stage, seconds: float) -> None:
    member = stage.member()
    with _links_fail(stage, member):
        stage.relays.cut(member.name)
        pass_time(seconds)


@contextlib.contextmanager
def _links_fail(stage: Stage, member: Member) -> Iterator[None]:
    """Links that fail in the block are restored at its end. A job that was lent before or meanwhile may run again."""
    member.faults += 1
    try:
        yield
    finally:
        stage.relays.restore()
    others = {other.name for other in stage.fleet.alive if other is not member}
    wait_for(lambda: stage.relays.linked(member.name) >= others, f"{member.name} has its links again")
    member.faults += 1
