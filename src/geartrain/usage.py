"""Quotas: how many connections, jobs and bytes a user has on the server now, and may have."""

from geartrain.errors import LimitError, QueueFullError


class UserUsage:
    """Of one user. All identities and connections of the user share it, and a reload keeps it. A limit of 0 is none."""

    __slots__ = (
        "bytes", "connections", "jobs", "max_connections", "max_queued_bytes", "max_queued_jobs", "name",
    )  # fmt: skip

    def __init__(
        self, name: str, max_connections: int = 0, max_queued_jobs: int = 0, max_queued_bytes: int = 0
    ) -> None:
        self.name = name
        self.max_connections = max_connections
        self.max_queued_jobs = max_queued_jobs
        self.max_queued_bytes = max_queued_bytes
        self.connections = 0
        self.jobs = 0  # that the user submitted and that have not ended; dead ones included
        self.bytes = 0  # of these jobs, as `max_queued_bytes` of the server counts them

    @property
    def is_unused(self) -> bool:
        return not (self.connections or self.jobs)

    def use_limits_of(self, other: "UserUsage") -> None:
        """Replace the limits. What exceeds the new ones stays."""
        self.max_connections = other.max_connections
        self.max_queued_jobs = other.max_queued_jobs
        self.max_queued_bytes = other.max_queued_bytes

    def add_connection(self) -> None:
        """Count one more connection; a LimitError if it would be one too many."""
        if self.max_connections and self.connections >= self.max_connections:
            raise LimitError(
                f"the user {self.name} has {self.connections} connections, as many as its max_connections allows"
            )
        self.connections += 1

    def check(self, jobs: int, size: int) -> None:
        """Raise QueueFullError if the user may not have so many more jobs, and bytes of them."""
        if jobs > 0 and self.max_queued_jobs and self.jobs + jobs > self.max_queued_jobs:
            raise QueueFullError(f"the user {self.name} has {self.jobs} jobs, as many as its max_queued_jobs allows")
        if size > 0 and self.max_queued_bytes and self.bytes + size > self.max_queued_bytes:
            raise QueueFullError(
                f"the jobs of the user {self.name} have {self.bytes} bytes, and {size} more exceed its max_queued_bytes"
                f" ({self.max_queued_bytes})"
            )
