"""What `bench/queues.py` shows of what it found, beyond what every comparison shows."""
