"""What several kinds of tests need: real servers as processes, and real peers."""
