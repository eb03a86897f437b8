"""What doors ask of jobs that are over."""

from typing import Protocol

from geartrain.model import Record


class Archive(Protocol):
    """Records of finished background jobs, as long as they are kept."""

    async def find(self, handle: bytes) -> Record | None:
        """What came of the job with this handle; None if it is unknown, forgotten, or not over."""
