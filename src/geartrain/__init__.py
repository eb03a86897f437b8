"""Geartrain: one durable job server that speaks five protocols over one engine."""

from importlib import metadata

__version__ = metadata.version("geartrain")
