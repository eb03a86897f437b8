"""The code and the database, broken on purpose: the simulation has to find each of these.

python -m campaigns.membership --schedules 1000 --mutant lapses-late
"""

from typing import Final

from campaigns.membership.database import Rules
from campaigns.membership.schedule import Mutant
from geartrain.cluster.cluster import Cluster


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


MUTANTS: Final[dict[str, Mutant]] = {
    "accuses-without-comparing": Mutant(Rules(compares_counters=False)),
    "commits-without-fence": Mutant(Rules(fences=False)),
    "takes-what-is-taken": Mutant(Rules(rechecks_ranges=False)),
    "two-leaders": Mutant(Rules(has_one_leader=False)),
    "lapses-late": Mutant(cluster=_LapsesLate),
    "counts-from-the-answer": Mutant(cluster=_CountsFromTheAnswer),
    "joins-at-once": Mutant(cluster=_JoinsAtOnce),
    "forgets-unread": Mutant(cluster=_ForgetsUnread),
}
