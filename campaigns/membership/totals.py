"""Sums over schedules."""

import collections
import time

from campaigns.membership.schedule import Schedule


class Sums:
    """Over some schedules."""

    def __init__(self) -> None:
        self.schedules = 0  # whole clusters
        self.episodes = 0  # faults in clusters that have many
        self.servers = 0
        self.steps = 0
        self.simulated = 0.0  # seconds
        self.faults: collections.Counter[str] = collections.Counter()
        self.counts: collections.Counter[str] = collections.Counter()

    def add(self, schedule: Schedule) -> None:
        self.schedules += 1
        if schedule.has_episodes:
            self.episodes += sum(schedule.counts.values())
        self.servers += schedule.starts
        self.steps += schedule.world.steps
        self.simulated += schedule.world.now
        self.faults.update(schedule.counts)
        self.counts.update(schedule.database.counts)
        audit = schedule.audit
        self.counts["jobs acknowledged"] += len(audit.acknowledged_jobs)
        self.counts["jobs assigned"] += len(audit.assigned_jobs)
        self.counts["runs of schedules"] += audit.runs
        self.counts["assigned after a suspension"] += audit.excused
        self.counts["commits in doubt"] += schedule.in_doubt

    def join(self, other: "Sums") -> None:
        """Add the sums over other schedules."""
        self.schedules += other.schedules
        self.episodes += other.episodes
        self.servers += other.servers
        self.steps += other.steps
        self.simulated += other.simulated
        self.faults.update(other.faults)
        self.counts.update(other.counts)


class Totals(Sums):
    """Of a run, and of earlier parts of it."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0  # of earlier parts
        self._began = time.monotonic()

    def elapsed(self) -> float:
        return self.seconds + time.monotonic() - self._began

    def progress(self) -> str:
        seconds = self.elapsed()
        episodes = f" with {self.episodes} episodes" if self.episodes else ""
        return f"{self.schedules} schedules{episodes}, {self.steps} steps, {seconds:.0f} s"

    def print(self) -> None:
        print(f"{self.progress()}: {self.servers} starts of servers, {self.simulated:.0f} simulated seconds")
        for title, counter in (("faults", self.faults), ("counted", self.counts)):
            print(f"  {title}: " + ", ".join(f"{name} {number}" for name, number in sorted(counter.items())))
