"""One small program for each queue that `bench/queues.py` measures: it submits empty tasks, or works."""
