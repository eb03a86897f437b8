"""One small program for each queue that `bench/queues.py` measures: it submits tasks, fetches results, or works."""
