"""Stores that the server can ask for payloads, so that it need not keep them.

Apart from the contract, because a protocol that is compiled cannot be checked at run time.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from geartrain.store.contract import J, Store


@runtime_checkable
class PayloadStore(Protocol):
    """A store that can be asked for the payloads of jobs that have not ended. So the server need not keep them.

    In what it commits, the row of a cold job has None in place of the payload, which stays as it is. It is no property
    of every store, because one that may lose commits, as a database that fails over does, gets them from the server
    again: that has to have the payloads.
    """

    def jobs_within(self, kind: type[J], has_room: Callable[[], bool], warm: bytes) -> Iterator[J]:
        """As `Store.jobs`; when there is no room, jobs are cold, but for those of the function `warm`."""

    def job_payloads(self, ids: Sequence[int], longest: int = sys.maxsize) -> dict[int, bytes]:
        """The payloads of unfinished jobs, by id, with at most `longest` bytes of each; without those that are gone."""

    def find_payloads(self, ids: Sequence[int], text: bytes) -> list[int]:
        """The ids of those of these unfinished jobs in whose payloads a text is."""


def as_payload_store(store: Store) -> PayloadStore | None:
    """The store, if it can be asked for the payloads of jobs."""
    return store if isinstance(store, PayloadStore) else None
