"""The GearMonkey door: Redis' protocol in front of the engine, for programs that keep their jobs in Redis."""
