"""Whoever wants to hear of every job, whichever door it came by."""

from mypy_extensions import mypyc_attr

from geartrain.engine.job import LiveJob, Progress


@mypyc_attr(allow_interpreted_subclasses=True)
class Audience:
    """The moments in the life of each job. While nobody attends, silence costs nothing.

    The calls come from inside engine verbs: an override writes to its own buffers and returns.
    """

    def created(self, job: LiveJob) -> None:
        """A job exists from now on."""

    def started(self, job: LiveJob) -> None:
        """A worker has been given a job; after a lost worker this comes again."""

    def progress(self, job: LiveJob, progress: Progress) -> None:
        """Its worker said how far it is."""

    def requeued(self, job: LiveJob, why: str) -> None:
        """A job that was running, or was dead, waits in its queue again."""

    def postponed(self, job: LiveJob, why: str) -> None:
        """A job that was running waits for `job.run_at` now."""

    def finished(self, job: LiveJob, result: bytes) -> None:
        """A job is over: `job.state` says how. The words of a failure are its result, or its reason."""


class Hall(Audience):
    """Several of them as one."""

    def __init__(self, members: list[Audience]) -> None:
        self.members = members

    def created(self, job: LiveJob) -> None:
        for member in self.members:
            member.created(job)

    def started(self, job: LiveJob) -> None:
        for member in self.members:
            member.started(job)

    def progress(self, job: LiveJob, progress: Progress) -> None:
        for member in self.members:
            member.progress(job, progress)

    def requeued(self, job: LiveJob, why: str) -> None:
        for member in self.members:
            member.requeued(job, why)

    def postponed(self, job: LiveJob, why: str) -> None:
        for member in self.members:
            member.postponed(job, why)

    def finished(self, job: LiveJob, result: bytes) -> None:
        for member in self.members:
            member.finished(job, result)


def seated(members: list[Audience]) -> Audience | None:
    """What the engine calls for these: nobody, the one, or all in a hall."""
    if not members:
        return None
    return members[0] if len(members) == 1 else Hall(members)
