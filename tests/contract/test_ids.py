"""An id that was promised away is never the first one again."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.contract import victim
from tests.contract.making import batch, ids, job
from tests.contract.places import PLACES, Place


def killed_after(kind: str, folder: Path, *steps: int) -> int:
    """Let a process open the store, promise ids, and be killed; the first id that it got."""
    command = [sys.executable, victim.__file__, kind, str(folder), *map(str, steps)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.kill()
    return int(first)


def durable_kinds() -> list[str]:
    return [kind for kind, make in PLACES.items() if make(Path("never-opened")).store().durable]


def test_first_id_of_a_new_store(place: Place) -> None:
    store = place.store()
    assert store.open() >= 1
    store.close(1)


def test_first_id_is_the_one_that_the_last_close_gave(place: Place) -> None:
    store = place.store()
    first = store.open()
    store.commit(batch(ids_until=first + 1000))
    store.close(first + 17)
    following = place.store()
    assert following.open() == first + 17
    following.close(first + 17)


@pytest.mark.parametrize("kind", [kind for kind in PLACES if kind not in durable_kinds()])
def test_promise_is_kept_by_a_store_that_was_never_closed(kind: str, tmp_path: Path) -> None:
    store = PLACES[kind](tmp_path).store()
    first = store.open()
    store.commit(batch(ids_until=first + 1000))
    store.commit(batch([job(first)]))
    assert store.open() == first + 1000


@pytest.mark.parametrize("kind", durable_kinds())
@pytest.mark.parametrize("steps", [(1000,), (1000, 2000, 3000)], ids=str)
def test_promise_outlives_a_server_that_was_killed(kind: str, steps: tuple[int, ...], tmp_path: Path) -> None:
    first = killed_after(kind, tmp_path, *steps)
    store = PLACES[kind](tmp_path).store()
    assert store.open() == first + steps[-1]
    assert ids(store) == [first + step - 1 for step in steps]
    store.close(first + steps[-1])


@pytest.mark.parametrize("kind", durable_kinds())
def test_ids_of_servers_that_are_killed_one_after_the_other_differ(kind: str, tmp_path: Path) -> None:
    firsts = [killed_after(kind, tmp_path, 10) for _ in range(3)]
    assert firsts == [firsts[0], firsts[0] + 10, firsts[0] + 20]
