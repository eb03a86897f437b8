"""A PostgreSQL for a measurement, and the processor time that it takes."""

import os
from pathlib import Path

from bench import contenders
from tests.support import postgres


def processor_seconds(cluster: postgres.Cluster) -> float:
    """Of the postmaster and all its processes so far, those that have ended included."""
    fields = Path(f"/proc/{cluster.pid}/stat").read_text().rpartition(")")[2].split()
    ended = (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
    return contenders.processor_seconds(cluster.pid) + ended


class Meter:
    """What PostgreSQL used between two moments."""

    def __init__(self, cluster: postgres.Cluster) -> None:
        self._cluster = cluster
        self._before = 0.0

    def begin(self) -> None:
        self._before = processor_seconds(self._cluster)

    def end(self, jobs: int) -> float:
        """Microseconds for one of so many jobs."""
        return (processor_seconds(self._cluster) - self._before) / jobs * 1e6
