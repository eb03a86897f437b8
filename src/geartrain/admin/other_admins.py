"""The other servers of the cluster, as admin asks them. `server/cluster_links.py` implements it over the links."""

from collections.abc import Mapping
from typing import Protocol


class NoAnswerError(Exception):
    """A server has not answered in time, or cannot be reached."""


class OtherAdmins(Protocol):
    """The servers that share the store of this one."""

    node: int  # of this server
    name: str
    node_bits: int  # by how many bits the number of a node is shifted in the ids that it gives out

    def names(self) -> Mapping[int, str]:
        """The names of those that live, by node. This server is not among them."""

    def owns(self, id: int) -> bool:
        """Whether this server is the home of jobs with such an id."""

    async def ask(self, node: int, content: bytes, seconds: float) -> bytes:
        """What a server answers; a NoAnswerError if it does not."""

    def round_trip(self, node: int) -> float | None:
        """Seconds that a message to a server and back takes; None if it is not known."""
