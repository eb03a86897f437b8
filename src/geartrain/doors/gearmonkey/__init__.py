"""The GearMonkey door: the protocol of Redis in front of the engine."""
