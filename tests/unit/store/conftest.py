"""A SQLite file, and stores on it."""

from tests.support.store_fixtures import opened, path

__all__ = ["opened", "path"]
