"""The peer door: the links to the other servers, who dials whom, and questions from one server to another.

Servers find each other through the store. Of each pair the newer one dials. A link without a sign of life is dropped,
and dialled again.
"""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, NamedTuple, cast

from geartrain.address import Address
from geartrain.doors import door
from geartrain.doors.peer.connection import PeerConnection
from geartrain.doors.peer.key_holders import KeyHolders
from geartrain.doors.peer.link import PeerLink
from geartrain.doors.peer.mirrors import Mirrors
from geartrain.doors.peer.offers import Offers
from geartrain.runtime import tick
from geartrain.runtime.timers import DelayedCall
from geartrain.wire import peer as wire

_NODE_BITS: Final = 32  # of an id: the number of a node is above them
_PING_SECONDS: Final = 1.0
_WAITING_SECONDS: Final = 0.05  # between two looks for jobs that wait, of which others should hear
_SILENT_SECONDS: Final = 3.0  # after which a link is dropped
_CONNECT_SECONDS: Final = 3.0
_FORGET_SECONDS: Final = 60.0  # after which nobody takes over the jobs of a server that is gone

_log = logging.getLogger("geartrain.cluster")


class Options(NamedTuple):
    """Settings of this door."""

    node: int  # of this server
    name: str
    secret: bytes  # that all servers of the cluster know
    grace: float  # seconds that jobs stay with a server whose link is lost
    tls: Callable[[], ssl.SSLContext]  # for links to addresses with TLS


class OtherServer(NamedTuple):
    """A living server of the cluster, as the store has it."""

    node: int
    name: str
    address: Address | None  # of its peer door; None: it has none


class PeerError(Exception):
    """A question to another server has no answer."""


Answerer = Callable[[PeerLink, bytes], Awaitable[bytes]]
Hearer = Callable[[PeerLink, bytes], None]


class PeerDoor(door.Door):
    """The links of this server."""

    name = "peer"
    Error = PeerError

    def __init__(self, tick_loop: tick.TickLoop, limits: door.Limits, options: Options) -> None:
        super().__init__(tick_loop, limits)
        self.options = options
        self.links: dict[int, PeerLink] = {}  # by node
        self.offers = Offers(self)
        self.returns: dict[int, int] = {}  # by job of this server: how often it was lent and came back unstarted
        self.answerers: dict[str, Answerer] = {}  # by what may be asked
        self.hearers: dict[str, Hearer] = {}  # by what may be told
        self.on_link: list[Callable[[PeerLink], None]] = []  # called when a link has a new connection
        self.mirrors = Mirrors(self)
        self.key_holders = KeyHolders(self)
        self._others: dict[int, OtherServer] = {}  # that live
        self._gone: set[int] = set()
        self._dials: dict[int, asyncio.Task[None]] = {}  # by node
        self._questions: dict[int, tuple[PeerLink, asyncio.Future[Any]]] = {}  # by number
        self._next_question = 1
        self._answers: set[asyncio.Task[None]] = set()  # that are being made
        self._ping_timer: DelayedCall | None = None
        self._waiting_timer: DelayedCall | None = None
        tick_loop.before_flush.append(self.offers.tell_changes)
        tick_loop.durability.followers.append(self._commit_ended)

    def connect(self, address: Address) -> PeerConnection:
        """A connection of a server that has dialled this one."""
        return PeerConnection(self)

    def hello(self, nonce: bytes) -> wire.Hello:
        """How this server introduces itself."""
        return wire.Hello(wire.MAGIC, wire.VERSION, self.options.node, self.options.name, nonce)

    # Who is there

    def see(self, others: Iterable[OtherServer]) -> None:
        """These servers live. Links to others end, and missing ones are dialled."""
        living = {other.node: other for other in others}
        for node in [node for node in self._others if node not in living]:
            self._gone.add(node)
            self._leave(node)
        self._others = living
        greeted = self._greeted()
        for other in living.values():
            is_mine = other.node < self.options.node and other.node not in greeted
            if is_mine and other.address is not None and not self._is_linked(other.node):
                self._dial(other.node, other.address)
        if self._ping_timer is None and not self.is_closed:
            self._ping_timer = self.tick_loop.timers.call_later(_PING_SECONDS, self._ping)
            self._tell_waiting()

    def is_gone(self, node: int) -> bool:
        """Whether a server has lived, and does no longer."""
        return node in self._gone

    def link(self, node: int, name: str) -> PeerLink:
        """The link to a server, made on first use."""
        link = self.links.get(node)
        if link is None:
            link = self.links[node] = PeerLink(self, node, name)
        link.name = name
        return link

    def link_to(self, id: int) -> PeerLink | None:
        """The link to the server that gave out an id; to any other one, which can find its home, if that is gone."""
        return self.link_to_giver(id) or next((link for link in self.links.values() if link.is_open), None)

    def link_to_giver(self, id: int) -> PeerLink | None:
        """The link to the server that gave out an id, which has the job as long as it lives."""
        link = self.links.get(id >> _NODE_BITS)
        return link if link is not None and link.is_open else None

    def _greeted(self) -> set[int]:
        """The servers that have accepted a connection, and have not answered on it yet: one that hangs never does."""
        return {
            connection.dialled
            for connection in self.connections
            if isinstance(connection, PeerConnection) and connection.link is None
        }

    def _is_linked(self, node: int) -> bool:
        link = self.links.get(node)
        return link is not None and link.is_open

    def _leave(self, node: int) -> None:
        """A server is gone: its loans are somebody else's. Jobs of its that run here wait for their new home."""
        link = self.links.get(node)
        if link is not None:
            link.close("it is no server of this cluster any more")
            self.tick_loop.timers.call_later(_FORGET_SECONDS, lambda: self._forget(node))

    def _forget(self, node: int) -> None:
        link = self.links.pop(node, None)
        if link is not None:
            link.loan.forget()

    def _dial(self, node: int, address: Address) -> None:
        if node not in self._dials and not self.is_closed:
            task = self._dials[node] = asyncio.ensure_future(self._connect(node, address))
            task.add_done_callback(lambda _: self._dials.pop(node, None))

    async def _connect(self, node: int, address: Address) -> None:
        context = self.options.tls() if address.tls else None
        try:
            await asyncio.wait_for(
                self.tick_loop.loop.create_connection(
                    lambda: cast(asyncio.Protocol, PeerConnection(self, node)),
                    address.host,
                    address.port,
                    ssl=context,
                    server_hostname=address.host if context is not None else None,
                ),
                _CONNECT_SECONDS,
            )
        except (OSError, TimeoutError) as error:
            fields = {"server": self._others[node].name if node in self._others else node, "why": str(error)}
            _log.debug("server cannot be reached", extra={"fields": fields})

    def _ping(self) -> None:
        self._ping_timer = self.tick_loop.timers.call_later(_PING_SECONDS, self._ping)
        for id in [id for id in self.returns if id not in self.tick_loop.engine.jobs]:
            del self.returns[id]
        self.mirrors.sweep()
        now = self.tick_loop.loop.time()
        for connection in list(self.connections):
            if isinstance(connection, PeerConnection):
                if now - connection.heard_at > _SILENT_SECONDS:
                    connection.drop(f"no sign of life for {_SILENT_SECONDS:g} seconds")
                elif connection.link is not None:
                    connection.ping(now)

    def _tell_waiting(self) -> None:
        self._waiting_timer = self.tick_loop.timers.call_later(_WAITING_SECONDS, self._tell_waiting)
        for link in self.links.values():
            if link.is_open:
                link.lending.retry()
                link.lending.tell_waiting()

    def close(self) -> None:
        """Close every connection, and dial no more."""
        for timer in (self._ping_timer, self._waiting_timer):
            if timer is not None:
                timer.cancel()
        self.mirrors.close()
        self.key_holders.close()
        for task in [*self._dials.values(), *self._answers]:
            task.cancel()
        super().close()

    def _commit_ended(self, ticket: int, failed: bool) -> None:
        for link in self.links.values():
            link.lending.commit_ended(ticket, failed)

    # Jobs that change their home

    def loans_in(self, low: int, high: int) -> list[int]:
        """Jobs of other servers with these ids that this one has, or whose end it knows."""
        return [id for link in self.links.values() for id in link.loan.known(low, high)]

    def move_loan(self, id: int, home: PeerLink) -> bool:
        """Another server has become the home of a job; return whether this one has it, or knows its end."""
        moved = [link.loan.move(id, home.loan) for link in list(self.links.values())]  # all of them, not the first
        return any(moved)

    def forget_loan(self, id: int) -> None:
        """This server has become the home of a job that it had borrowed."""
        for link in self.links.values():
            link.loan.jobs.pop(id, None)

    # Questions

    async def ask(self, link: PeerLink, what: str, content: bytes, seconds: float) -> bytes:
        """The answer of another server; a PeerError if there is none in time."""
        answer = await self._question(link, lambda number: wire.Ask(number, what, content), seconds)
        if answer.error:
            raise PeerError(answer.error)
        content = answer.content
        return content

    async def ask_for_loans(self, link: PeerLink, low: int, high: int, seconds: float) -> list[int]:
        """Which jobs with these ids another server has; none if it does not say so in time."""
        try:
            answer = await self._question(link, lambda number: wire.Adopted(low, high, number), seconds)
        except PeerError:
            return []
        ids: list[int] = answer.ids
        return ids

    async def _question(self, link: PeerLink, frame: Callable[[int], wire.Frame], seconds: float) -> Any:
        if not link.is_open:
            raise PeerError(f"there is no link to server {link.name}")
        number, self._next_question = self._next_question, self._next_question + 1
        answer: asyncio.Future[Any] = self.tick_loop.loop.create_future()
        self._questions[number] = (link, answer)
        self.tick_loop.begin_tick()
        link.send(frame(number))
        try:
            return await asyncio.wait_for(answer, seconds)
        except TimeoutError:
            raise PeerError(f"server {link.name} has not answered within {seconds:g} s") from None
        finally:
            self._questions.pop(number, None)

    def take_answer(self, link: PeerLink, number: int, frame: Any) -> None:
        """An answer has arrived."""
        asked, answer = self._questions.get(number, (None, None))
        if asked is link and answer is not None and not answer.done():
            answer.set_result(frame)

    def fail_questions(self, link: PeerLink) -> None:
        """The link is lost: there will be no answers."""
        for asked, answer in list(self._questions.values()):
            if asked is link and not answer.done():
                answer.set_exception(PeerError(f"the link to server {link.name} was lost"))

    def answer(self, link: PeerLink, frame: wire.Ask) -> None:
        """Answer a question of another server."""
        task = asyncio.ensure_future(self._answer(link, frame))
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    async def _answer(self, link: PeerLink, frame: wire.Ask) -> None:
        answerer = self.answerers.get(frame.what)
        answer = wire.Answer(frame.number, b"", f"there is no question {frame.what!r}")
        if answerer is not None:
            try:
                answer = wire.Answer(frame.number, await answerer(link, frame.content))
            except PeerError as error:
                answer = wire.Answer(frame.number, b"", str(error))
            except Exception:
                _log.exception("a question of another server could not be answered")
                answer = wire.Answer(frame.number, b"", "the server failed to answer")
        self.tick_loop.begin_tick()
        link.send(answer)

    def tell(self, what: str, content: bytes) -> None:
        """Tell all other servers something."""
        for link in self.links.values():
            link.send(wire.Tell(what, content))

    def hear(self, link: PeerLink, frame: wire.Tell) -> None:
        """Another server has told something."""
        hearer = self.hearers.get(frame.what)
        if hearer is not None:
            hearer(link, frame.content)
