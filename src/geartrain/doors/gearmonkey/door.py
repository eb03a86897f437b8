"""The GearMonkey door: its options, and what its connections share."""

import dataclasses
import itertools
from collections.abc import Mapping

from geartrain.address import Address
from geartrain.doors import door
from geartrain.doors.gearmonkey import commands
from geartrain.doors.gearmonkey.blocked_pops import BlockedPops
from geartrain.doors.gearmonkey.channels import FINISH, Channels, JobEventPublisher
from geartrain.doors.gearmonkey.connection import GearmonkeyConnection
from geartrain.doors.gearmonkey.detached_workers import DetachedWorkers
from geartrain.doors.gearmonkey.distant_counts import DistantCounts
from geartrain.doors.gearmonkey.distant_hashes import HashReader
from geartrain.doors.gearmonkey.distant_subscribers import DistantSubscribers
from geartrain.doors.gearmonkey.ending_jobs import EndingJobs
from geartrain.doors.gearmonkey.job_hashes import JobHashes
from geartrain.doors.gearmonkey.popped_jobs import PoppedJobs
from geartrain.doors.gearmonkey.queue_removals import QueueRemovals
from geartrain.doors.gearmonkey.worker_counts import WorkerCounts
from geartrain.runtime import tick
from geartrain.runtime.records import RecordArchive


@dataclasses.dataclass
class Options:
    """Settings of this door."""

    version: str  # of Geartrain; INFO has it, and our library recognizes the server by it
    grace: float = 60.0  # seconds that popped jobs stay with their worker when its connection has closed


class GearmonkeyDoor(door.Door):
    """Redis' protocol, with the engine behind GearMonkey's keys."""

    name = "gearmonkey"

    def __init__(
        self,
        tick_loop: tick.TickLoop,
        limits: door.Limits,
        options: Options,
        archive: RecordArchive,
        saved_values: Mapping[str, bytes],
    ) -> None:
        super().__init__(tick_loop, limits)
        self.options = options
        self.archive = archive
        self.jobs = JobHashes(tick_loop.engine, saved_values, tick_loop.values)
        self.ending = EndingJobs(tick_loop)
        self.counts = WorkerCounts(tick_loop.engine)
        self.channels = Channels()
        self.blocked_pops = BlockedPops(tick_loop)
        self.detached = DetachedWorkers(tick_loop, options.grace)
        self.scheduled: set[bytes] = set()  # handles of live jobs that were queued for a time
        self.popped = PoppedJobs(tick_loop.engine)
        self.hashes = HashReader(tick_loop, self.jobs)
        self.removals = QueueRemovals(self)
        if tick_loop.values.is_shared:
            self._join_cluster()
        self.command_count = len(commands.COMMANDS)
        self._numbers = itertools.count(1)
        tick_loop.engine.subscribe(JobEventPublisher(self))
        tick_loop.after.append(self.blocked_pops.recheck)

    def _join_cluster(self) -> None:
        """Share channels and counts with the other servers."""
        distant = DistantSubscribers(lambda: self.tick_loop.others, self._hear)
        self.channels.use(distant)
        self.blocked_pops.distant = distant
        self.counts.distant = DistantCounts(self.tick_loop, self.counts)

    def _hear(self, channel: bytes, message: bytes) -> None:
        """Another server has published a message."""
        self.channels.deliver(channel, message)
        finish = FINISH.fullmatch(message)
        if finish is not None:
            self.blocked_pops.end_of(channel.removeprefix(b"channel:"), int(finish[1]))

    def close(self) -> None:
        """Close every connection."""
        if self.counts.distant is not None:
            self.counts.distant.close()
        super().close()

    def connect(self, address: Address) -> GearmonkeyConnection:
        """A connection for a new peer."""
        return GearmonkeyConnection(self, next(self._numbers))

    def stop_listening(self) -> None:
        """Accept no more connections; detached workers could not report any more, so their jobs go back."""
        super().stop_listening()
        self.tick_loop.begin_tick()
        self.detached.close()

    def peers(self) -> list[GearmonkeyConnection]:
        """The open connections, the oldest first."""
        peers = [peer for peer in self.connections if isinstance(peer, GearmonkeyConnection)]
        return sorted(peers, key=lambda peer: peer.number)
