"""A process that opens a store, writes to it, says so, and waits to be killed.

    python tests/contract/victim.py sqlite /some/folder 1000 2000

promises the ids below the first id plus 1000, then plus 2000, with a job in each promise, and prints the first id.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.contract.making import batch, job
from tests.contract.places import PLACES


def main(kind: str, folder: str, *steps: str) -> None:
    store = PLACES[kind](Path(folder)).store()
    first = store.open()
    for step in map(int, steps):
        store.commit(batch([job(first + step - 1)], ids_until=first + step))
    print(first, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
