"""The limits that a function may have; `flow.py` keeps them."""

from typing import NamedTuple

from geartrain.rates import Rate


class FlowLimits(NamedTuple):
    """What an operator or the code of a task allows a function; 0 and None: no limit."""

    max_running: int = 0
    max_running_per_partition: int = 0
    rate: Rate | None = None
    rate_per_partition: Rate | None = None
    separator: bytes = b""  # a job without a partition has what its unique key has before this; empty: it has none

    @property
    def of_partitions(self) -> bool:
        """Whether partitions are limited."""
        return self.max_running_per_partition > 0 or self.rate_per_partition is not None

    @property
    def most_per_partition(self) -> int:
        """How many jobs of a partition may start at once, at most; partitions must be limited."""
        rate = self.rate_per_partition
        if rate is None:
            return self.max_running_per_partition
        return min(rate.burst, self.max_running_per_partition or rate.burst)

    def partition_of(self, unique: bytes) -> bytes:
        """The partition of a job that was submitted without one.

        >>> FlowLimits(separator=b":").partition_of(b"acme:17"), FlowLimits(separator=b":").partition_of(b"17")
        (b'acme', b'')
        """
        end = unique.find(self.separator) if self.separator else -1
        return unique[:end] if end > 0 else b""
