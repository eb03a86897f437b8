"""Whoever wants to hear of every job, whichever door it came by."""

from geartrain.engine.job import LiveJob


class Audience:
    """Three moments in the life of each job. At most one audience per engine, so that silence costs nothing.

    The calls come from inside engine verbs: an override writes to its own buffers and returns.
    """

    def created(self, job: LiveJob) -> None:
        """A job exists from now on."""

    def started(self, job: LiveJob) -> None:
        """A worker has been given a job; after a lost worker this comes again."""

    def finished(self, job: LiveJob, result: bytes) -> None:
        """A job is over: `job.state` says how. The words of a failure are its result, or its reason."""
