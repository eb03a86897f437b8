"""A process that opens a store, writes to it, prints the first id, and waits to be killed.

    python tests/contract/stores/killed_writer.py sqlite /some/folder 1000 2000

reserves the ids up to the first id plus 1000, then plus 2000, and saves a job with each reservation.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.contract.stores.backends import BACKENDS
from tests.contract.stores.factories import batch, job


def main(kind: str, folder: str, *steps: str) -> None:
    store = BACKENDS[kind](Path(folder)).store()
    first = store.open()
    for step in map(int, steps):
        store.commit(batch([job(first + step - 1)], ids_until=first + step))
    print(first, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
