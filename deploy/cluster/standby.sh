#!/bin/sh
# Runs the standby of compose.yaml: a copy of the primary at the first start. The primary is where PGHOST and PGPORT say;
# arguments are for the postgres program.
set -eu
until [ -s "$PGDATA/PG_VERSION" ]; do
    pg_basebackup --username=replicator --pgdata="$PGDATA" --checkpoint=fast --write-recovery-conf --wal-method=stream \
        || sleep 1
done
exec env --unset=PGHOST --unset=PGPORT postgres "$@"
