"""Servers of a cluster on a simulated clock and a simulated database: random faults, and rules that hold after each."""
