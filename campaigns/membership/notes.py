"""The sums of a long run in a file, so that a run that was ended goes on, and its count is right whenever that is.

The file is written between two schedules. What ran after that is run again.
"""

import os
from pathlib import Path
from typing import Any

import msgspec

from campaigns.membership.totals import Totals

_COUNTERS = ("faults", "counts")
_SUMS = ("schedules", "episodes", "servers", "steps", "simulated")


class Notes:
    """What a file has of one run."""

    def __init__(self, path: Path, run: dict[str, int], totals: Totals) -> None:
        self._path = path
        self._run = run  # which one it is
        self._totals = totals

    def read(self) -> int:
        """Add what earlier parts have done to the sums; return the number of the next schedule."""
        if not self._path.exists():
            return 0
        noted: dict[str, Any] = msgspec.json.decode(self._path.read_bytes())
        if noted["run"] != self._run:
            raise SystemExit(f"{self._path} is of another run: {noted['run']}, and not {self._run}")
        for name in _SUMS:
            setattr(self._totals, name, noted[name])
        for name in _COUNTERS:
            getattr(self._totals, name).update(noted[name])
        self._totals.seconds = noted["seconds"]
        return int(noted["next"])

    def write(self, next_schedule: int) -> None:
        """Replace the file: it is never half written."""
        noted = {name: getattr(self._totals, name) for name in (*_SUMS, *_COUNTERS)}
        noted |= {"run": self._run, "next": next_schedule, "seconds": self._totals.elapsed()}
        new = self._path.with_name(self._path.name + ".new")
        new.write_bytes(msgspec.json.encode(noted))
        os.replace(new, self._path)
