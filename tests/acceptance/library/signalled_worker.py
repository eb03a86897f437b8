"""A worker program, for tests that send it signals: `signalled_worker.py URL FUNCTION MODE`."""

import logging
import sys

import functions

import geartrain


def main() -> None:
    url, function, mode = sys.argv[1:]
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="log: %(message)s")
    worker = geartrain.Worker(url, mode=mode)
    worker.register(function, functions.wait_for_gate)
    worker.run(ready=lambda: print("working", flush=True))
    print("ended", flush=True)


if __name__ == "__main__":
    main()
