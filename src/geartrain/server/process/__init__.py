"""The process around the server: launch, daemon, log, pid file, privileges, signals, systemd."""
