"""What a peer is asked for, in the environment: the processes that a queue's own command starts see it too."""

import os

URL = os.environ["BENCH_URL"]
ROW = os.environ["BENCH_ROW"]  # plain, results, chords, retries or processes
RESULTS = ROW in ("results", "chords")  # a queue that can drop results is quicker so


def port() -> int:
    return int(URL.rpartition(":")[2].partition("/")[0])
