"""A worker that works until a line arrives on its stdin: `signalled_worker.py URL FUNCTION`."""

import sys

from geartrain.client import gearmonkey


def work(payload: bytes) -> bytes:
    print("working on", payload.decode(), flush=True)
    sys.stdin.readline()
    return payload.upper()


def main(url: str, function: str) -> None:
    worker = gearmonkey.Worker(url, work)
    worker.accept(function)
    assert not worker.run_one(0.01)
    print("ready", flush=True)
    worker.run()
    print("run has returned", flush=True)


main(*sys.argv[1:])
