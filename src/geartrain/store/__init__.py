"""Stores: one contract, and its implementations in memory and in a SQLite file."""
