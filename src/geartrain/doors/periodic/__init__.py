"""The Periodic door: both dialects, over TCP and socket files."""
