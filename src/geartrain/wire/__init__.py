"""Sans-IO codecs: bytes to frames and back. Nothing here knows the engine, sockets or the time."""
