"""The Periodic door: scheduled jobs by function and name, in both dialects, over TCP and socket files."""
