"""Settings: the table, the types of values, and loading them from flags, environment and file."""
