"""Work on stores that no server has open: dump, load, compact, job history, doctor."""
