"""The one job engine: plain synchronous Python, no I/O, no clock, no asyncio."""
