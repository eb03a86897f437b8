"""Values that are saved under names."""

import pytest

from geartrain.store.contract import Store
from tests.contract.stores.conftest import Reopen
from tests.contract.stores.factories import batch, ids, job


def test_new_store_has_no_values(store: Store) -> None:
    assert store.saved_values() == {}


@pytest.mark.parametrize("value", [b"", b"\0", bytes(range(256)), b"x" * 1_000_000], ids=len)
def test_value_is_restored(store: Store, reopened: Reopen, value: bytes) -> None:
    store.commit(batch(name=value))
    assert store.saved_values() == {"name": value}
    assert reopened().saved_values() == {"name": value}


def test_value_replaces_an_older_one(store: Store, reopened: Reopen) -> None:
    store.commit(batch(one=b"1", two=b"2"))
    store.commit(batch(two=b"two", three=b"3"))
    expected = {"one": b"1", "two": b"two", "three": b"3"}
    assert store.saved_values() == expected
    assert reopened().saved_values() == expected


def test_value_and_jobs_in_one_batch(store: Store, reopened: Reopen) -> None:
    store.commit(batch([job(1)], name=b"value"))
    following = reopened()
    assert (ids(following), following.saved_values()) == ([1], {"name": b"value"})


def test_other_batches_do_not_change_values(store: Store) -> None:
    store.commit(batch(name=b"value"))
    store.commit(batch([job(1)]))
    assert store.saved_values() == {"name": b"value"}
