"""The handle of a job that was submitted: its own, or that of the job of another server that has its unique key."""

from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import KeyWaiter
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import RESERVING


class SubmittedHandle(KeyWaiter):
    """Right once the submission is durable."""

    __slots__ = ("handle",)

    def __init__(self, engine: Engine, job: LiveJob) -> None:
        self.handle = job.handle
        if job.state is RESERVING:
            engine.wait_for_key(job, self)

    def key_taken(self, handle: bytes) -> None:
        """Take over that handle."""
        self.handle = handle
