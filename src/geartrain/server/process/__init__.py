"""The process around the server: start, background, signals, privileges, log."""
