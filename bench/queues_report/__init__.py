"""What `bench/queues.py` shows of what it found."""
