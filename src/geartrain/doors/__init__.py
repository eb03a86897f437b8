"""Doors: asyncio on one side, engine verbs on the other. One package per protocol."""
