"""What doors and admin stand on: the tick, the clock, durability and records. asyncio, but no protocol."""
