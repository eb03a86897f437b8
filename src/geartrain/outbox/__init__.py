"""A transactional outbox: jobs that exist if, and only if, a transaction of your own database commits.

    with psycopg.connect(DATABASE) as connection:
        connection.execute("INSERT INTO orders (id, total) VALUES (%s, %s)", (7, 100))
        outbox.submit(connection, send_receipt.bind(7))

`submit` writes a row beside yours, in the same transaction. A relay (`geartrain outbox relay`, or `Relay` inside a
program) moves the rows to a server. The database is a PostgreSQL, by psycopg 3, or an SQLite file.
"""

from geartrain.outbox.relay import Relay
from geartrain.outbox.submit import create_table, create_table_async, submit, submit_async
from geartrain.outbox.table import POSTGRESQL_TABLE, SQLITE_TABLE

__all__ = [
    "POSTGRESQL_TABLE",
    "SQLITE_TABLE",
    "Relay",
    "create_table",
    "create_table_async",
    "submit",
    "submit_async",
]
