#!/bin/sh
# Prepares the primary of compose.yaml: roles, the database, and the right to replicate. PostgreSQL's image runs it once.
set -eu
psql --set ON_ERROR_STOP=1 \
    --set jobs_password="$GEARTRAIN_PASSWORD" --set replication_password="$REPLICATION_PASSWORD" <<'SQL'
CREATE ROLE geartrain LOGIN PASSWORD :'jobs_password';
CREATE ROLE replicator LOGIN REPLICATION PASSWORD :'replication_password';
CREATE DATABASE jobs OWNER geartrain ENCODING 'UTF8' TEMPLATE template0;
SQL
echo "host replication replicator all scram-sha-256" >> "$PGDATA/pg_hba.conf"
