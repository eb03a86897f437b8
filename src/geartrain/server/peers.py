"""The links of this server to the others: whom the peer door dials, and what becomes of jobs whose home is gone."""

import asyncio
import ssl
from collections.abc import Iterable
from typing import Any, Final

from geartrain import address
from geartrain.doors.peer.door import OtherServer, PeerDoor
from geartrain.doors.peer.link import PeerLink
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import DEAD
from geartrain.errors import AddressError
from geartrain.server.config.settings import Settings
from geartrain.store.shared import IdRange, Node
from geartrain.wire import peer as wire

_LOANS_SECONDS: Final = 1.0  # for which a takeover waits for other servers to say which jobs they run
_POLL_SECONDS: Final = 0.02


class LinkedServers:
    """The other servers of the cluster; implements `cluster.peers.Peers`."""

    def __init__(self, door: PeerDoor) -> None:
        self._door = door
        self._engine = door.tick_loop.engine
        self._nodes: set[int] = set()  # other servers that have a peer door
        self._holders: dict[int, PeerLink] = {}  # by job: who runs it

    def see(self, others: list[Node]) -> None:
        """These other servers live: have links to all of them."""
        servers = [OtherServer(node.id, node.name, _peer_address(node)) for node in others]
        self._nodes = {server.node for server in servers if server.address is not None}
        self._door.see(servers)

    async def find_loans(self, ids: IdRange) -> None:
        """Ask the others which jobs of a range they run."""
        loop = self._door.tick_loop.loop
        until = loop.time() + _LOANS_SECONDS
        while self._unlinked() and loop.time() < until:  # this server, or one of them, has just started
            await asyncio.sleep(_POLL_SECONDS)
        links = [link for link in self._door.links.values() if link.is_open]
        questions = [self._door.ask_for_loans(link, ids.low, ids.high, _LOANS_SECONDS) for link in links]
        self._holders = {
            id: link for link, found in zip(links, await asyncio.gather(*questions), strict=True) for id in found
        }

    def _unlinked(self) -> bool:
        links = self._door.links
        return any(node not in links or not links[node].is_open for node in self._nodes)

    def restore(self, jobs: Iterable[LiveJob]) -> None:
        """Restore jobs; those that this server or another one runs go on there."""
        entrusted: dict[PeerLink, list[int]] = {}
        for job in jobs:
            holder = self._holders.pop(job.id, None)
            verdict = self._verdict(job.id)
            if job.state is DEAD:
                self._engine.restore(job)
            elif self._engine.own(job):  # a verdict is about an earlier loan of it
                self._door.forget_loan(job.id)
            elif verdict is not None:
                link, frame = verdict
                self._engine.restore(job, link.lending.holder)
                link.lending.apply(link.lending.holder, frame)
            elif holder is not None and holder.is_open:
                self._engine.restore(job, holder.lending.holder)
                holder.lending.adopt(job.id)
                entrusted.setdefault(holder, []).append(job.id)
            else:
                self._engine.restore(job)
        for link, ids in entrusted.items():
            link.send(wire.Entrusted(ids))

    def _verdict(self, id: int) -> tuple[PeerLink, Any] | None:
        """What became of a job that ran here, if its home was lost before it knew; each is returned once."""
        verdicts = [(link, link.loan.take_verdict(id)) for link in self._door.links.values()]
        return next((verdict for verdict in verdicts if verdict[1] is not None), None)


def _peer_address(node: Node) -> address.Address | None:
    """The peer door of a server; None if it has none, because it is older than peer doors."""
    if "://" not in node.link:
        return None
    try:
        return address.parse(node.link)
    except AddressError:
        return None


def client_context(settings: Settings) -> ssl.SSLContext:
    """TLS for links to other servers. Who they are is proved by the secret of the cluster, beside certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # servers are known by addresses, which certificates need not name
    if settings.tls_ca:
        context.load_verify_locations(settings.tls_ca)
    else:
        context.verify_mode = ssl.CERT_NONE
    if settings.tls_certificate:
        context.load_cert_chain(settings.tls_certificate, settings.tls_key or None)
    return context
