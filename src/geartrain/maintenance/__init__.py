"""Maintenance of stores without a server: dump, load, compact, job history, doctor."""
