"""Moving the jobs of a running Gearman server to another server."""
