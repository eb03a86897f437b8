"""One file per protocol: what a connection of the client library says to a server of that kind."""
