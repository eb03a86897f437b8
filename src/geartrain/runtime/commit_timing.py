"""When a batch is written that gathered during the last commit: at once, or together with what comes next.

Clients that wait for acknowledgements submit again as soon as they have them. A batch that is handed over in the moment
in which a commit ends leaves out those whom that commit has answered. They wait for this commit and for the next one,
and from then on two groups of clients take turns, with two syncs where one would do.

So the batch waits until everybody is back, if lately that took less than half of a commit: whoever waits in the
batch waits a little longer for it, and half as long for each of the next ones. Clients that do not come back, because
they have nothing more to submit, delay one commit: the next ones wait for nobody, until all have been fast again.
"""

from typing import Final

# Of the duration of a commit: as long as that may it take until everybody is back. The disk is idle meanwhile, which
# is worth it where a commit is mostly a sync. With a fast disk it is mostly processor time, and little is saved.
_WORTH: Final = 0.5
_SHORTEST: Final = 0.001  # seconds; timers are not more precise
_UNKNOWN: Final = 1.0  # seconds, at first and at most
_TOO_LONG: Final = 4.0  # commits, if somebody does not come back: the next three commits do not wait
_LONGEST: Final = 0.05  # seconds, however slow the disk is
_LONGER: Final = 4.0  # times as long as lately: then somebody will not come back


class CommitTiming:
    """What was seen of the last commits. Times are of one clock, in seconds."""

    def __init__(self) -> None:
        self._away = 0  # as many have to wait for the next batch before everybody is back; 0: nobody is away
        self._began_at = 0.0  # when the last commit began and ended
        self._ended_at = 0.0
        self._return_seconds = _UNKNOWN  # how long it takes until everybody is back

    def begin_commit(self, waiting: int, now: float) -> None:
        """So many wait for the commit that begins: the others are still away."""
        self._began_at = now
        self._away = max(self._away - waiting, 0)

    def end_commit(self, expected: int, now: float) -> None:
        """The commit has ended: with those that it has answered, so many would wait for the next batch."""
        if self._away:
            self._learn(_TOO_LONG * max(now - self._began_at, 0.0))
        self._away = expected
        self._ended_at = now

    @property
    def is_somebody_away(self) -> bool:
        """Whether `observe` has something to find out."""
        return self._away > 0

    def observe(self, waiting: int, now: float) -> None:
        """So many wait for the batch that gathers."""
        if 0 < self._away <= waiting:
            self._away = 0
            self._learn(now - self._ended_at)

    def _learn(self, seconds: float) -> None:
        """The longest of the last times counts: now and then, jobs that arrive at random times look like returns."""
        self._return_seconds = min(max(seconds, self._return_seconds / 2), _UNKNOWN)

    def patience(self, now: float) -> float:
        """For how many seconds the batch that gathers has to wait for those who are away; 0.0: not any longer."""
        if not self._away:
            return 0.0
        most = _WORTH * (self._ended_at - self._began_at)
        if self._return_seconds > most:
            return 0.0
        most = min(most, _LONGER * self._return_seconds, _LONGEST)
        waited = max(now - self._ended_at, 0.0)  # less than nothing where the clock was set back
        return max(max(most, _SHORTEST) - waited, 0.0)
