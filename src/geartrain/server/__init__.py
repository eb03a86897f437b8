"""Wires the rooms together: settings, start, drain, stop."""
