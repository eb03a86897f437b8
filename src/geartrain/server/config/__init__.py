"""Settings: the table of them, their types, and where their values come from."""
