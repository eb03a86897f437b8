"""Reserved ids are never handed out again after a restart."""

import subprocess
import sys
from pathlib import Path

import pytest

from geartrain.store.shared import as_shared
from tests.contract.stores import killed_writer
from tests.contract.stores.backends import BACKENDS, Backend
from tests.contract.stores.factories import batch, ids, job


def killed_after(kind: str, folder: Path, *steps: int) -> int:
    """Run a process that opens the store and reserves ids, and kill it; return the first id that it got."""
    command = [sys.executable, killed_writer.__file__, kind, str(folder), *map(str, steps)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.kill()
    return int(first)


def durable_kinds() -> list[str]:
    return [kind for kind, make in BACKENDS.items() if make(Path("never-opened")).store().durable]


def test_first_id_of_a_new_store(backend: Backend) -> None:
    store = backend.store()
    assert store.open() >= 1
    store.close(1)


def test_first_id_is_the_next_id_of_the_last_close(backend: Backend) -> None:
    store = backend.store()
    first = store.open()
    store.commit(batch(ids_until=first + 1000))
    store.close(first + 17)
    following = backend.store()
    if as_shared(store) is not None:  # every start has a range of its own
        assert following.open() >= first + 2**32
    else:
        assert following.open() == first + 17
    following.close(first + 17)


@pytest.mark.parametrize("kind", [kind for kind in BACKENDS if kind not in durable_kinds()])
def test_reservation_holds_for_a_store_that_was_never_closed(kind: str, tmp_path: Path) -> None:
    store = BACKENDS[kind](tmp_path).store()
    first = store.open()
    store.commit(batch(ids_until=first + 1000))
    store.commit(batch([job(first)]))
    assert store.open() == first + 1000


@pytest.mark.parametrize("kind", durable_kinds())
@pytest.mark.parametrize("steps", [(1000,), (1000, 2000, 3000)], ids=str)
def test_reservation_survives_a_kill(kind: str, steps: tuple[int, ...], tmp_path: Path) -> None:
    first = killed_after(kind, tmp_path, *steps)
    store = BACKENDS[kind](tmp_path).store()
    assert store.open() == first + steps[-1]
    assert ids(store) == [first + step - 1 for step in steps]
    store.close(first + steps[-1])


@pytest.mark.parametrize("kind", durable_kinds())
def test_ids_after_repeated_kills_differ(kind: str, tmp_path: Path) -> None:
    firsts = [killed_after(kind, tmp_path, 10) for _ in range(3)]
    assert firsts == [firsts[0], firsts[0] + 10, firsts[0] + 20]
