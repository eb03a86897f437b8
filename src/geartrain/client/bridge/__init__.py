"""Joins a Redis with GearMonkey's jobs and a server: workers of either run the jobs of both."""
