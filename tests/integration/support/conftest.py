"""Tests of what other tests are built on: it fails here first."""

from tests.support.postgres_fixtures import cluster, clusters, schema, schema_url

__all__ = ["cluster", "clusters", "schema", "schema_url"]
