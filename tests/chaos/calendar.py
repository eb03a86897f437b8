"""A schedule that runs every second while servers fail: its runs are those of the calendar, each once.

No worker takes the jobs of its runs, so they are all in the database. A run and the time of the next one are one
commit: at any moment, in one look at the database, there are as many jobs as seconds have passed until then.
"""

import json
import subprocess

import psycopg

from tests.chaos.members import Fleet
from tests.support import serving

NAME = "every-second"
FUNCTION = b"second"


class Calendar:
    """The schedule, and what the database has of it."""

    def __init__(self, fleet: Fleet) -> None:
        self._store = fleet.members[0].store
        server = f"gearman://{serving.HOST}:{fleet.members[0].port}"
        command = [str(serving.installed_command()), "cron", "add", NAME, "@every 1s", FUNCTION.decode()]
        done = subprocess.run([*command, "--missed", "all", "--server", server], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def handles(self) -> set[bytes]:
        """The jobs of all runs."""
        return self._look()[0]

    def check(self, when: str) -> None:
        """There is one job for each time that has come."""
        handles, runs = self._look()
        assert len(handles) == runs, f"{when}: a schedule was due {runs} times, and has run {len(handles)} times"

    def _look(self) -> tuple[set[bytes], int]:
        """The jobs of the runs, and how many there have to be."""
        with psycopg.connect(self._store) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            with connection.transaction():
                jobs = connection.execute("SELECT handle FROM geartrain.jobs WHERE function = %s", (FUNCTION,))
                handles = {handle for (handle,) in jobs}
                values = connection.execute("SELECT value FROM geartrain.kept WHERE name LIKE 'cron%' AND value <> ''")
                times = [json.loads(value)["next_at"] for (value,) in values]
        return handles, round(max(times) - min(times))  # of the next run, and of the first
