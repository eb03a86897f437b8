"""The jobs: queues, workers, leases and schedules. No I/O, no clock, no asyncio."""
