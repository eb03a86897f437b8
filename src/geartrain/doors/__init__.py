"""Doors: one package per protocol. Each parses packets, calls verbs of the engine, and encodes the answers."""
