"""The code and the database, broken on purpose: the simulation has to find each of these.

python -m campaigns.membership --schedules 1000 --mutant lapses-late
"""

import asyncio
from typing import Final

from campaigns.membership.database import Rules
from campaigns.membership.schedule import Mutant
from geartrain.cluster.cluster import Cluster
from geartrain.cluster.rescue import LostJobs


class _LapsesLate(Cluster):
    """Its jobs are its own for three leases."""

    def _renew(self) -> None:
        super()._renew()
        self._engine.renew(self._engine.now + 3 * self._options.lease)


class _CountsFromTheAnswer(Cluster):
    """The lease is counted from the end of a commit, so a long commit is a long lease."""

    def _renew(self) -> None:
        self._store.renewed_at = self._monotonic()
        super()._renew()


class _JoinsAtOnce(Cluster):
    """It serves before the others know that it is there."""

    async def join(self, stopped: object) -> None:
        self._looks.start()


class _ForgetsUnread(Cluster):
    """A range whose jobs could not be read is not read again."""

    async def _restore(self, ids: object) -> None:
        try:
            await super()._restore(ids)  # type: ignore[arg-type]
        finally:
            self._unread, self._is_taking = None, False


class _ForgetsLostJobs(Cluster):
    """What a fenced server has brought along is not submitted again."""

    async def rescue(self, jobs: LostJobs, stopped: object) -> None:
        jobs.left = []


class _RescuesOnce(Cluster):
    """It is, unless the server is fenced again meanwhile."""

    async def rescue(self, jobs: LostJobs, stopped: asyncio.Event) -> None:
        await super().rescue(jobs, stopped)
        jobs.left = []


class _NotesWholeRanges(Cluster):
    """A range counts as restored when it is taken."""

    def _note_restored(self) -> None:
        self._committer.restored = list(self._taken)


MUTANTS: Final[dict[str, Mutant]] = {
    "accuses-without-comparing": Mutant(Rules(compares_counters=False)),
    "commits-without-fence": Mutant(Rules(fences=False)),
    "takes-what-is-taken": Mutant(Rules(rechecks_ranges=False)),
    "two-leaders": Mutant(Rules(has_one_leader=False)),
    "passes-older-databases": Mutant(Rules(compares_last=False)),
    "leaves-lost-jobs-to-others": Mutant(Rules(claims_lost_jobs=False)),
    "removes-unread-rows": Mutant(Rules(keeps_unread_rows=False)),
    "lapses-late": Mutant(cluster=_LapsesLate),
    "counts-from-the-answer": Mutant(cluster=_CountsFromTheAnswer),
    "joins-at-once": Mutant(cluster=_JoinsAtOnce),
    "forgets-unread": Mutant(cluster=_ForgetsUnread),
    "forgets-lost-jobs": Mutant(cluster=_ForgetsLostJobs),
    "rescues-once": Mutant(cluster=_RescuesOnce),
    "notes-whole-ranges": Mutant(cluster=_NotesWholeRanges),
}
