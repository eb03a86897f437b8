#!/bin/sh
# Makes commits of the primary wait for the standby, once the standby follows. Before that they would wait for ever.
set -eu
until [ "$(psql --no-align --tuples-only --command="SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'")" -gt 0 ]; do
    sleep 1
done
psql --command="ALTER SYSTEM SET synchronous_standby_names = '*'" --command="SELECT pg_reload_conf()"
