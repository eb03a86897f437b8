"""A primary and its standby, of which the primary can be lost.

    with postgres_pair.Pair() as pair:
        psycopg.connect(pair.url)      # whichever of the two can be written to
        pair.fail_over()               # kill -9 of the primary, then promote the standby
        pair.restore_standby()         # the killed one comes back as the standby of the other

A commit on a synchronous pair is acknowledged when the standby has it on disk too. On an asynchronous pair the standby
can be left behind: what is committed from then on is lost with the primary.
"""

import contextlib
from typing import Self

from tests.support import postgres, postgres_programs, scratch, serving
from tests.support.postgres import USER, Cluster
from tests.support.waiting import wait_for

# Where nobody listens: the standby can then receive nothing more.
NOWHERE = f"host={serving.HOST} port=1"
_COPIES = 3


class Pair:
    """Two clusters with their ports in one URL; which of them is the primary changes with each failover."""

    def __init__(self, version: int = postgres_programs.NEWEST, synchronous: bool = True) -> None:
        self.synchronous = synchronous
        self.primary = postgres.new_cluster(version)
        self.standby = Cluster(self.primary.programs, postgres.new_folder("standby"))
        self._ports: tuple[int, int] = (0, 0)

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.callback(self.close)
            self.primary.start()
            self._follow()
            self._ports = (self.primary.port, self.standby.port)
            stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """Of whichever can be written to."""
        return self.url_with()

    def url_with(self, **parameters: str) -> str:
        """The same with more parameters, of libpq or ours."""
        hosts = ",".join(f"{serving.HOST}:{port}" for port in self._ports)
        return postgres.url(USER, f"{USER}@{hosts}", {"target_session_attrs": "read-write", **parameters})

    def kill_primary(self) -> None:
        self.primary.kill()

    def promote(self) -> None:
        """The standby becomes a primary that has nobody behind it. The old primary must be gone."""
        assert self.primary.server is None, "two primaries at once"
        assert self.standby.query("SELECT pg_promote(true, 60)") == [(True,)], "the standby was not promoted"
        self.primary, self.standby = self.standby, self.primary

    def fail_over(self) -> None:
        self.kill_primary()
        self.promote()

    def leave_behind(self) -> None:
        """The standby has what is committed now, and receives nothing more."""
        assert not self.synchronous, "a synchronous primary waits for ever for a standby that receives nothing"
        ((written,),) = self.primary.query("SELECT pg_current_wal_lsn()")
        received = f"SELECT pg_last_wal_receive_lsn() >= '{written}'"
        wait_for(lambda: self.standby.query(received) == [(True,)], "the standby has received everything")
        self.standby.query(f"ALTER SYSTEM SET primary_conninfo = '{NOWHERE}'")
        self.standby.query("SELECT pg_reload_conf()")
        wait_for(lambda: not self.standby.query("SELECT 1 FROM pg_stat_wal_receiver"), "the standby is left behind")

    def restore_standby(self) -> None:
        """Make the killed cluster a standby of the other, from a new copy of that one's data."""
        assert self.standby.server is None, "the standby still runs"
        scratch.clear(self.standby.folder)
        self._follow()

    def close(self) -> None:
        for cluster in (self.primary, self.standby):
            postgres.discard(cluster)

    def _follow(self) -> None:
        """Copy the primary's data to the standby, start that, and wait until commits wait for it, if they shall."""
        source = ("--host", serving.HOST, "--port", str(self.primary.port), "--username", USER)
        target = ("--pgdata", str(self.standby.folder), "--write-recovery-conf", "--checkpoint", "fast", "--no-sync")
        self._copy(*source, *target)
        self.standby.start()
        self._wait_for_state("streaming", "state")
        if self.synchronous:
            # Said only now, and only to this one: a standby that is promoted must not wait for one of its own.
            self.primary.query("ALTER SYSTEM SET synchronous_standby_names = '*'")
            self.primary.query("SELECT pg_reload_conf()")
            self._wait_for_state("sync", "sync_state")

    def _copy(self, *arguments: str) -> None:
        """On a busy machine, the stream of a copy breaks now and then; then it is made again."""
        for attempt in range(_COPIES):
            try:
                self.primary.programs.run("pg_basebackup", *arguments, cwd=self.standby.folder.parent)
                return
            except AssertionError:
                if attempt == _COPIES - 1:
                    raise
                scratch.clear(self.standby.folder)

    def _wait_for_state(self, wanted: str, column: str) -> None:
        statement = f"SELECT {column} FROM pg_stat_replication"
        wait_for(lambda: (wanted,) in self.primary.query(statement), f"a standby with the {column} {wanted}")
