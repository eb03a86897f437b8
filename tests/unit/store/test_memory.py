"""Records that are added to the memory store without a batch."""

import threading

import pytest

from geartrain.store.contract import Query
from geartrain.store.memory import MemoryRecord, MemoryStore
from tests.contract.stores.factories import batch, prune, record, records


def memory_record(id: int, finished_at: float = 0.0) -> MemoryRecord:
    return MemoryRecord(
        id, b"H:host:%d" % id, b"f", b"", 1, 3, 1.0, 2.0, finished_at or float(id), 1, "gearman", "gearman", b"ann", 0,
        "", b"result", None, True, "",
    )  # fmt: skip


def noted(*ids: int) -> MemoryStore:
    store = MemoryStore()
    for id in ids:
        store.add_record(memory_record(id))
    return store


def test_added_record_is_found() -> None:
    store = noted(1, 2)
    (found,) = store.records(Query(handle=b"H:host:2"))
    assert (found.id, found.worker, found.result, found.failed_attempts) == (2, b"ann", b"result", b"")
    store.add_record(memory_record(3))
    assert records(store) == [3, 2, 1]
    assert store.records(Query(handle=b"H:host:4")) == []


def test_order_of_added_and_committed_records() -> None:
    store = noted(5)
    store.commit(batch(finished=[record(2)]))
    store.add_record(memory_record(4))
    assert records(store) == [4, 2, 5]


@pytest.mark.parametrize("asked", [(), (3,), (3, 6)], ids=["never", "once", "twice"])
@pytest.mark.parametrize("keep", [0, 2, 4, 6, 10])
def test_prune_removes_the_oldest_whether_indexed_or_not(asked: tuple[int, ...], keep: int) -> None:
    store = MemoryStore()
    for id in range(1, 7):
        store.add_record(memory_record(id))
        if id in asked:
            records(store)
    assert prune(store, 0.0, keep) == max(6 - keep, 0)
    assert records(store) == list(range(6, max(6 - keep, 0), -1))


def test_prune_by_time() -> None:
    store = noted(1, 2, 3)
    assert prune(store, 3.0, 10) == 2
    assert records(store) == [3]


def test_query_from_another_thread_while_records_are_added() -> None:
    store = MemoryStore()
    count = 20_000
    sizes: list[int] = []
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            sizes.append(len(store.records(Query(limit=count))))

    thread = threading.Thread(target=ask)
    thread.start()
    for id in range(1, count + 1):
        store.add_record(memory_record(id))
    done.set()
    thread.join()
    assert sizes == sorted(sizes)
    assert [found.id for found in store.records(Query(limit=count))] == list(range(count, 0, -1))
