"""Several servers on one store: who lives, who leads, and who takes over whose jobs."""
