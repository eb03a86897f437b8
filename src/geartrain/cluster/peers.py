"""The links to other servers, as the cluster sees them."""

from collections.abc import Iterable
from typing import Protocol

from geartrain.engine.job import LiveJob
from geartrain.store.shared import IdRange, Node


class Peers(Protocol):
    """Implemented over the peer door; a simulation may do without."""

    def see(self, others: list[Node]) -> None:
        """These other servers live."""

    async def find_loans(self, ids: IdRange) -> None:
        """This server has taken a range: ask the others which of its jobs they run, before any is restored."""

    def restore(self, jobs: Iterable[LiveJob]) -> None:
        """Restore jobs of that range; those that somebody runs go on where they are."""
