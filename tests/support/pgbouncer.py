"""A real PgBouncer in transaction mode, in front of a cluster.

    with pgbouncer.PgBouncer(cluster.port) as pooler:
        psycopg.connect(pooler.url())

Between two transactions a client has no session of its own: the next may run on another connection to PostgreSQL.
"""

import signal
from typing import Self

from tests.support import daemon, postgres, postgres_programs, scratch, serving
from tests.support.postgres import USER

PROGRAM = "/usr/sbin/pgbouncer"
PEER = "pgbouncer"  # its name in tools/peers.py
SETTINGS = """\
[databases]
* = host={host} port={target} user={user}
[pgbouncer]
listen_addr = {host}
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {pool_size}
max_client_conn = 200
"""


class PgBouncer(daemon.Daemon):
    """Passes on to the PostgreSQL at a port."""

    name = "PgBouncer"
    ready = ("process up",)

    def __init__(self, target: int, pool_size: int = 4) -> None:
        super().__init__(postgres.new_folder("pgbouncer"))
        self._target = target
        self._pool_size = pool_size

    def __enter__(self) -> Self:
        self.folder.mkdir()
        postgres_programs.hand_over(self.folder)
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        scratch.clear(self.folder)
        self.kill()

    def url(self, database: str = USER, **parameters: str) -> str:
        return postgres.url(database, f"{USER}@{serving.HOST}:{self.port}", parameters)

    def stop(self) -> None:
        """Drop every client and every connection to PostgreSQL at once."""
        self.end(signal.SIGTERM)

    def command(self, port: int) -> list[str]:
        settings = self.folder / "pgbouncer.ini"
        facts = {"host": serving.HOST, "port": port, "target": self._target, "user": USER, "pool_size": self._pool_size}
        settings.write_text(SETTINGS.format(**facts))
        return postgres_programs.unprivileged(PROGRAM, str(settings))
