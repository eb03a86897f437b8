"""Queues that keep their jobs in PostgreSQL, one script each, which run in environments of their own."""
