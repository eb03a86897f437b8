"""The server process: configuration, start, drain and stop. It connects the other rooms and holds no job logic."""
