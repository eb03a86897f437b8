"""What the engine tells whoever makes jobs durable. This base keeps nothing: it is the memory store's."""

from mypy_extensions import mypyc_attr

from geartrain.engine.job import LiveJob
from geartrain.engine.worker import Worker


@mypyc_attr(allow_interpreted_subclasses=True)
class Journal:
    """Three facts about background jobs, and values that doors keep; foreground jobs are never mentioned here.

    The calls come in the middle of a verb and must return at once: a real journal only gathers, and writes
    what one tick gathered as one batch.
    """

    def accepted(self, job: LiveJob) -> None:
        """A background job exists from now on and must survive a crash."""

    def changed(self, job: LiveJob) -> None:
        """A job that was accepted before has another payload, time, state, attempt or reason now."""

    def finished(self, job: LiveJob, result: bytes, worker: Worker | None) -> None:
        """A job that was accepted before has ended (done, failed or cancelled) and need not run again."""

    def emptied(self) -> None:
        """The last of very many jobs is over: a good time to give memory back."""

    def keep(self, name: str, value: bytes) -> None:
        """Remember a value under a name, for whoever asks at the next start."""
