"""One random schedule: a few servers, load, and faults at random times; then peace, in which everything must settle.

In a large cluster there may be thousands of faults instead of a few, one after another and at once. Each of them is an
*episode*: its time, its kind, its server and its length are drawn independently of all others.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from campaigns.membership.audit import Audit
from campaigns.membership.database import Database, Rules
from campaigns.membership.server import ServerOptions, SimulatedServer
from campaigns.membership.world import EPOCH, FaultError, Machine, Site, World
from geartrain.cluster import liveness
from geartrain.cluster.cluster import Cluster
from geartrain.cluster.rescue import LostJobs
from geartrain.errors import StoreError
from geartrain.store.postgresql_nodes import standstill_seconds
from geartrain.store.shared import Node

LEASES: Final = (2.0, 2.0, 5.0, 5.0, 10.0, 20.0)  # the last has twice as many beats as the others
_DRIFT: Final = 0.1  # clocks of machines differ by up to this share
_WALL_STEP: Final = 3600.0
_SLOW_LEASES: Final = 0.2  # that the slowest messages take
_SERVERS: Final = (2, 2, 2, 2, 3, 3, 4)
_FAULT_COUNTS: Final = (1, 1, 2, 2, 3, 5)
_START_BEATS: Final = 2.0  # within which servers are started
_FAULT_BEATS: Final = 4.0  # within which a single fault begins; several take more
_MOST_APART: Final = 5  # faults; more of them are closer together
_KEYS: Final = (b"", b"", b"", b"a", b"b")
_LEASES_AWAY: Final = (0.05, 0.2, 0.2, 0.6, 0.8, 1.0, 1.2, 1.6)
# A server that was killed refuses connections, so the others take over from it after two or three beats.
_BEATS_DEAD: Final = (0.5, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 12.0)
_LEASES_OF_FAILOVER: Final = (0.02, 0.1, 0.3, 1.2)
_RESTART_SECONDS: Final = 1.0  # a service manager's pause
_NAME_POLL: Final = 0.1
_BUSY_SHARE: Final = 0.4  # of failovers with loss, after which PostgreSQL commits nothing for a while
_SLOW_SHARE: Final = 0.4  # of them, after which a server is too slow to notice
_POOLER_SHARE: Final = 0.2
_SETTLE_LEASES: Final = 12.0
_JOIN_BEATS: Final = 8.0  # in which most servers of a large cluster have joined
_EPISODE_BEATS: Final = 20.0  # between two episodes of a server, on average: it needs about as many to recover
_EPISODES_OF_ALL: Final = 2.0  # within the time in which each server has one
_DRAWS: Final = 20  # of a server that runs, for an episode


class Mutant(NamedTuple):
    """What is broken on purpose; nothing, unless a test of the simulation says so."""

    rules: Rules = Rules()
    cluster: type[Cluster] = Cluster


HEALTHY: Final = Mutant()


class Place(Site):
    """Where a server runs under a name: it is started again there."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.machine: Machine | None = None
        self.server: SimulatedServer | None = None
        self.wants_to_run = True
        self.process = object()  # of the server, or of the one that was fenced before it
        self.carried: list[Any] = []  # rows of jobs that a server which was fenced takes along


class Schedule:
    """Everything that happens is decided by the seed."""

    def __init__(self, seed: str, servers: int = 0, mutant: Mutant = HEALTHY, episodes: int = 0) -> None:
        self.world = World(seed)
        self.chance = self.world.chance
        self.lease = self.chance.choice(LEASES)
        self.beat = liveness.beat_seconds(self.lease)
        self.world.slowest = _SLOW_LEASES * self.lease
        self.database = Database(mutant.rules, lambda: self.world.now)
        self.audit = Audit(self.world, self.database)
        self.options = ServerOptions(self.lease, self.chance.uniform(0.3, 6.0) * self.lease, mutant.cluster)
        servers = servers or self.chance.choice(_SERVERS)
        self.places = [Place(f"server{number}") for number in range(servers)]
        self.counts: dict[str, int] = {}  # of faults
        self.starts = 0  # of servers
        self.in_doubt = 0  # commits whose answer was lost
        self._is_up = True  # the database
        self._is_calm = False  # no more faults
        self._has_schedule = False
        self._workers_rest = self.chance.random() < 0.5  # in the end: then jobs have to be there, and not done
        self._has_pooler = self.chance.random() < _POOLER_SHARE  # connections outlive the database behind it
        self._faults = episodes or self.chance.choice(_FAULT_COUNTS) + servers // 10
        self.has_episodes = episodes > 0
        self._over_at = 0.0  # when the last fault is over

    # Network

    def reaches(self, machine: Machine) -> bool:
        return self._is_up and not machine.site.is_cut_off

    def is_held(self, machine: Machine) -> bool:
        return self._has_pooler and not self._is_up and not machine.site.is_cut_off

    def fate(self) -> str:
        if self._is_calm:
            return "commits"
        draw = self.chance.random()
        if draw < 0.93:
            return "commits" if draw < 0.8 else "slow"
        return ("lost before", "lost after", "outlives")[int(draw * 1000) % 3]

    # Servers

    def start(self, place: Place) -> None:
        """Start a process under the name of the place."""
        rate = self.chance.uniform(1.0 - _DRIFT, 1.0 + _DRIFT)
        offset = EPOCH + self.chance.uniform(-1.0, 1.0)
        place.machine = machine = Machine(self.world, rate, offset, place)
        machine.wall_offset -= machine.monotonic()
        self._open(place, machine, None, 0.0)

    def _open(self, place: Place, machine: Machine, namesake: Node | None, deadline: float) -> None:
        """Become a node, after a node of the same name is gone (`NodeTable.join`)."""
        if not place.wants_to_run or place.machine is not machine:
            return
        found = self.database.named(place.name) if self.reaches(machine) else None
        if not self.reaches(machine) or (
            namesake and found and (found.id, found.batch) != (namesake.id, namesake.batch)
        ):
            self._start_later(place)
            return
        if found is not None:
            deadline = deadline if namesake is not None else machine.monotonic() + standstill_seconds(self.lease)
            if not self.refuses(found, "") and machine.monotonic() < deadline:
                self.world.after(_NAME_POLL, lambda: self._open(place, machine, found, deadline), machine)
                return
            if not self.database.accuse(found):
                self._start_later(place)
                return
        node = self.database.join(place.name, place.name)
        unwritten, place.carried = LostJobs(place.carried), []
        server = SimulatedServer(
            node, machine, self.database, self, self.audit, self.options, self.refuses,
            lambda: self._ended(machine), unwritten,
        )  # fmt: skip
        self.audit.servers[node.id] = place.server = server
        self.starts += 1
        try:
            server.start()
        except StoreError:
            self._end_server(place, server.unwritten)
            self._start_later(place)
            return
        self._load(server)

    def _start_later(self, place: Place) -> None:
        self.world.after(_RESTART_SECONDS, lambda: self._start_again(place))

    def _start_again(self, place: Place) -> None:
        if place.server is None and place.wants_to_run:
            self.start(place)

    def _ended(self, machine: Machine) -> None:
        """A server has stopped by itself; one that was fenced begins anew."""
        place = next(place for place in self.places if place.machine is machine)  # another was started in its first one
        server = place.server
        if server is not None and server.is_fenced and place.wants_to_run:
            self._end_server(place, server.unwritten)
        else:
            self.crash(place)
        if place.wants_to_run:
            self._start_later(place)

    def crash(self, place: Place) -> None:
        """The process is gone, whatever it was doing."""
        self._end_server(place, [])
        self.audit.process_ended(place.process)
        place.process = object()

    def _end_server(self, place: Place, carried: list[Any]) -> None:
        """The server is gone; its process goes on if it takes jobs along."""
        place.carried = carried
        if not place.wants_to_run and place in self.places:
            self.places.remove(place)
        if place.machine is not None:
            place.machine.is_up = False
        if place.server is not None:
            place.server.loop.close()
            self.in_doubt += sum(place.server.store.in_doubt.values())
            del self.audit.servers[place.server.node.id]
        place.machine = place.server = None

    def refuses(self, node: Node, machine: str) -> bool:
        """Whether nothing listens at the address of a node. A machine that stands still accepts connections."""
        server = self.audit.servers.get(node.id)
        return bool(node.link) and (server is None or not server.listens)

    # Load

    def _load(self, server: SimulatedServer) -> None:
        gap = self.chance.uniform(0.1, 2.0) * self.beat
        self.world.after(gap, lambda: self._act(server), server.machine)

    def _act(self, server: SimulatedServer) -> None:
        """A client or a worker does something."""
        if server.loop.is_closed_for_good:
            return
        if server.is_serving and not (self._is_calm and self._workers_rest):
            draw = self.chance.random()
            if not self._has_schedule:
                self._has_schedule = True
                server.add_schedule(f"@every {max(int(self.lease / 3), 1)}s")
            if draw < 0.4 and not self._is_calm:
                server.submit(self.chance.choice(_KEYS))
            elif draw < 0.75:
                server.claim()
            else:
                server.complete()
        self._load(server)

    # Faults

    def _fault(self) -> None:
        name, fault = self.chance.choice(_FAULTS)
        self.counts[name] = self.counts.get(name, 0) + 1
        fault(self, self.chance.choice(self.places))

    def _episode(self) -> None:
        """A fault of a server that runs, or seldom one of many servers at once."""
        is_of_all = self.chance.random() < _EPISODES_OF_ALL / len(self.places)
        name, fault = self.chance.choice(_FAULTS_OF_ALL if is_of_all else _FAULTS_OF_ONE)
        for _ in range(_DRAWS):
            place = self.chance.choice(self.places)
            if place.server is not None and place.machine is not None and place.machine.paused_until <= self.world.now:
                self.counts[name] = self.counts.get(name, 0) + 1
                fault(self, place)
                return

    def _some_time(self) -> float:
        """Mostly around the lease, since that is where it matters."""
        return self._about(self.lease * self.chance.choice(_LEASES_AWAY))

    def _time_dead(self) -> float:
        """Of a server that was killed: mostly around the moment at which the others notice."""
        return self._about(self.beat * self.chance.choice(_BEATS_DEAD))

    def _about(self, seconds: float) -> float:
        seconds *= self.chance.uniform(0.8, 1.2)
        self._over_at = max(self._over_at, self.world.now + seconds)
        return seconds

    def _pause(self, place: Place) -> None:
        if place.machine is not None:
            place.machine.pause(self._some_time())

    def _suspend(self, place: Place) -> None:
        if place.machine is not None and place.machine.paused_until <= self.world.now:
            place.machine.suspend(self._some_time())

    def _kill(self, place: Place) -> None:
        self.crash(place)
        self._start_after(place, self._time_dead())

    def _kill_for_good(self, place: Place) -> None:
        """The machine is lost, and another one gets another name."""
        self.crash(place)
        place.name += "x"
        self._start_after(place, self._time_dead())

    def _stop(self, place: Place) -> None:
        server = place.server
        if server is not None:
            server.loop.run(lambda: server.stop(self.chance.random() < 0.7))

    def _move(self, place: Place) -> None:
        """The server is started elsewhere under the same name, while the first process may go on."""
        old = Place(place.name)
        old.machine, old.server, old.wants_to_run = place.machine, place.server, False
        old.process, place.process = place.process, object()
        old.carried, place.carried = place.carried, []
        if old.machine is not None:
            old.machine.site = old
        self.places.append(old)
        self._cut([old])
        place.machine = place.server = None
        self.start(place)

    def _start_after(self, place: Place, seconds: float) -> None:
        self.world.after(seconds, lambda: self._start_again(place))

    def _cut_off(self, place: Place) -> None:
        self._cut([place])

    def _cut_off_many(self, place: Place) -> None:
        self._cut([other for other in self.places if self.chance.random() < 0.5])

    def _cut(self, places: list[Place]) -> None:
        for place in places:
            place.is_cut_off = True
            if place.server is not None:
                place.server.store.is_connected = False
        self.world.after(self._some_time(), lambda: self._restore(places))

    def _restore(self, places: list[Place]) -> None:
        for place in places:
            place.is_cut_off = False

    def _fail_over(self, place: Place) -> None:
        """The database is away for a while. It loses its transactions, and nothing that is committed."""
        self._disconnect()
        self.world.after(self._some_time(), self._database_is_back)

    def _disconnect(self) -> None:
        self._is_up = False
        self.database.crash()
        if not self._has_pooler:
            for server in self.audit.servers.values():
                server.store.is_connected = False

    def _database_is_back(self) -> None:
        self._is_up = True

    def _leave_standby_behind(self, place: Place) -> None:
        """A standby hears nothing from now on. Some time later it takes over."""
        saved = self.database.save()

        def fail_over() -> None:
            before = list(self.database.jobs.values())
            self._disconnect()
            self.database.go_back(saved)
            processes = {place.server.node.id: place.process for place in self.places if place.server is not None}
            carried = {place.process: place.carried for place in self.places if place.carried}
            self.audit.went_back(before, processes, carried)
            away = self._about(self.lease * self.chance.choice(_LEASES_OF_FAILOVER))
            self.world.after(away, self._database_is_back)
            if self.chance.random() < _BUSY_SHARE:
                self.database.commits_at = self.world.now + away + self._some_time()
            while self.chance.random() < _SLOW_SHARE:
                self.chance.choice((Schedule._pause, Schedule._cut_off))(self, self.chance.choice(self.places))

        self.world.after(self._some_time(), fail_over)

    def _hold_commits(self, place: Place) -> None:
        """PostgreSQL can be read, and commits nothing."""
        self.database.commits_at = max(self.database.commits_at, self.world.now + self._some_time())

    def _set_clock(self, place: Place) -> None:
        if place.machine is not None:
            place.machine.wall_offset += self.chance.uniform(-_WALL_STEP, _WALL_STEP)

    # The whole

    def run(self) -> None:
        """Let it happen; a FaultError if a rule is broken, or if it does not settle."""
        for place in list(self.places):
            delay = self.chance.uniform(0.0, _START_BEATS) * self.beat
            self.world.after(delay, lambda place=place: self.start(place))
        begin, end = self._fault_times()
        for _ in range(self._faults):
            self.world.after(self.chance.uniform(begin, end), self._episode if self.has_episodes else self._fault)
        self.world.run(end)
        self._is_calm = True
        while self.world.now < self._over_at:
            self.world.run(self._over_at)
        limit = self.world.now + _SETTLE_LEASES * self.lease + self.options.patience
        while self.world.now < limit:
            self.world.run(self.world.now + self.beat)
            if not self.audit.unsettled():
                return
        raise FaultError(f"it does not settle: {self.audit.unsettled()}")

    def _fault_times(self) -> tuple[float, float]:
        """When the first fault may begin, and when the last."""
        if self.has_episodes:
            begin = _JOIN_BEATS * self.beat
            return begin, begin + self._faults / len(self.places) * _EPISODE_BEATS * self.beat
        begin = _START_BEATS * self.beat
        return begin, begin + _FAULT_BEATS * min(self._faults, _MOST_APART) ** 0.5 * self.beat


_Faults = tuple[tuple[str, Callable[[Schedule, Place], None]], ...]

_FAULTS_OF_ONE: Final[_Faults] = (
    ("pause", Schedule._pause),
    ("pause", Schedule._pause),
    ("suspend", Schedule._suspend),
    ("kill", Schedule._kill),
    ("kill", Schedule._kill),
    ("lose machine", Schedule._kill_for_good),
    ("stop", Schedule._stop),
    ("start elsewhere", Schedule._move),
    ("cut off", Schedule._cut_off),
    ("cut off", Schedule._cut_off),
    ("set clock", Schedule._set_clock),
)
_FAULTS_OF_ALL: Final[_Faults] = (
    ("cut off many", Schedule._cut_off_many),
    ("failover", Schedule._fail_over),
    ("failover with loss", Schedule._leave_standby_behind),
    ("commits hang", Schedule._hold_commits),
)
_FAULTS: Final = _FAULTS_OF_ONE + _FAULTS_OF_ALL
