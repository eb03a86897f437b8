"""Jobs at the other servers of the cluster: asked for over the links.

A handle says which server gave it out. If that one can be reached, it is asked, and nobody else. If not, its jobs may
have been taken over by another one, or wait in the store to be taken over.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from geartrain.doors.peer.door import Answerer as PeerAnswerer
from geartrain.doors.peer.door import Hearer as PeerHearer
from geartrain.doors.peer.door import PeerDoor, PeerError
from geartrain.doors.peer.link import PeerLink
from geartrain.doors.periodic import job_names
from geartrain.engine.engine import Engine
from geartrain.engine.interfaces import Watcher
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import DEAD, RUNNING
from geartrain.errors import DuplicateKeyError, NotDurableError, StoreError
from geartrain.model import id_from_handle
from geartrain.runtime.other_servers import Answerer, DistantJob, DistantServers, Hearer, JobName, UnreachableError
from geartrain.store.shared import IdRange, SharedStore
from geartrain.wire import peer as wire

PATIENCE: Final = 1.0  # seconds for which a peer waits for another server
_NODE_BITS: Final = 32  # of an id; the others are the number of the server that gave it out
_FIND: Final = "find job"
_CANCEL: Final = "cancel job"
_RETRY: Final = "retry job"
_DELETE: Final = "delete job"
_DONE: Final = b"done"  # as the answer to an order; empty: there is no such job
_KEY_IN_USE: Final = b"unique key in use"

_names = msgspec.msgpack.Decoder(JobName)
_found = msgspec.msgpack.Decoder(DistantJob | None)
_orders = msgspec.msgpack.Decoder(tuple[bytes, str])
_encoder = msgspec.msgpack.Encoder()


class LinkedDistantServers(DistantServers):
    """Those that this server has links to."""

    def __init__(self, door: PeerDoor, store: SharedStore, before: DistantServers) -> None:
        super().__init__()
        self._door = door
        self._store = store
        self._tick_loop = door.tick_loop
        door.answerers[_FIND] = self._answer_find
        door.answerers[_CANCEL] = self._answer_cancel
        door.answerers[_RETRY] = self._answer_retry
        door.answerers[_DELETE] = self._answer_delete
        for what, answerer in before.answerers.items():
            door.answerers[what] = _without_link(answerer)
        for told, hearer in before.hearers.items():
            door.hearers[told] = _with_node(hearer)
        for call in before.on_link:
            door.on_link.append(_of_link(call))
        self.exist = True

    def tell(self, what: str, content: bytes, node: int = 0) -> None:
        """Tell one other server something, or all of them."""
        self._tick_loop.schedule_tick()
        if not node:
            self._door.tell(what, content)
        elif node in self._door.links:
            self._door.links[node].send(wire.Tell(what, content))

    # Questions of this server

    async def ask_home(self, id: int, what: str, content: bytes) -> bytes:
        """The answer of the server that gave an id out; of the first that has one if that is gone."""
        links = [link for link in self._door.links.values() if link.is_open]
        giver = [link for link in links if link.node == id >> _NODE_BITS]
        questions = [self._door.ask(link, what, content, PATIENCE) for link in giver or links]
        answers = await asyncio.gather(*questions, return_exceptions=True)
        return next((answer for answer in answers if isinstance(answer, bytes) and answer), b"")

    async def find(self, name: JobName) -> DistantJob | None:
        """The live or dead job of that name, if another server has it, or nobody yet."""
        question = _encoder.encode(name)
        number = id_from_handle(name.handle)
        giver = self._door.links.get(number >> _NODE_BITS)
        if giver is not None and giver.is_open and not name.unique:
            try:
                return await self._ask_one(giver, question)
            except PeerError:
                return await self._find_in_store(number, name)
        links = [link for link in self._door.links.values() if link.is_open]
        answers = await asyncio.gather(*(self._ask_one(link, question) for link in links), return_exceptions=True)
        found = next((answer for answer in answers if isinstance(answer, DistantJob)), None)
        if found is None and number:
            found = await self._find_in_store(number, name)
        return found

    async def _ask_one(self, link: PeerLink, question: bytes) -> DistantJob | None:
        found: DistantJob | None = _found.decode(await self._door.ask(link, _FIND, question, PATIENCE))
        return found

    async def _find_in_store(self, number: int, name: JobName) -> DistantJob | None:
        """A job whose home is gone, and which nobody has taken over yet."""
        try:
            jobs = await self._tick_loop.loop.run_in_executor(None, self._read, number)
        except StoreError:
            return None
        job = next((job for job in jobs if job.handle == name.handle), None)
        return _description(job, 0) if job is not None and name.function in (b"", job.function) else None

    def _read(self, number: int) -> list[LiveJob]:
        return next(self._store.jobs_of(IdRange(number, number + 1), LiveJob), [])

    async def watch(self, name: JobName, watcher: Watcher, on_loss: Callable[[], None]) -> DistantJob | None:
        """Let a watcher hear what happens to a job, wherever it is."""
        found = await self.find(name)
        link = self._door.links.get(found.node) if found is not None else None
        if found is not None and link is not None and await self._door.mirrors.watch(link, found, watcher, on_loss):
            return found
        engine = self._tick_loop.begin_tick()  # this server may have become its home
        job = _find(engine, name)
        if job is None or job.state is DEAD:
            return None
        if job.progress is not None:
            watcher.progress(job, job.progress)
        engine.watch(job, watcher)
        return _description(job, self._door.options.node)

    async def cancel(self, job: DistantJob, reason: str) -> bool:
        """Cancel a job that was found, and wait until that is durable; whether it was still there."""
        return bool(await self._order(_CANCEL, job, reason))

    async def retry(self, job: DistantJob) -> bool:
        """Queue a dead job again; a DuplicateKeyError if another job has its unique key now."""
        answer = await self._order(_RETRY, job)
        if answer == _KEY_IN_USE:
            raise DuplicateKeyError("another job has its unique key now")
        return bool(answer)

    async def delete(self, job: DistantJob) -> bool:
        """Delete a dead job."""
        return bool(await self._order(_DELETE, job))

    async def _order(self, what: str, job: DistantJob, reason: str = "") -> bytes:
        link = self._door.links.get(job.node)
        if link is None:
            raise UnreachableError
        try:
            return await self._door.ask(link, what, _encoder.encode((job.handle, reason)), PATIENCE)
        except PeerError as error:
            raise UnreachableError from error

    # Answers to questions of others

    async def _answer_find(self, link: PeerLink, content: bytes) -> bytes:
        job = _find(self._tick_loop.begin_tick(), _names.decode(content))
        return _encoder.encode(_description(job, self._door.options.node) if job is not None else None)

    async def _answer_cancel(self, link: PeerLink, content: bytes) -> bytes:
        handle, reason = _orders.decode(content)
        engine = self._tick_loop.begin_tick()
        job = _own(engine, engine.find(handle))
        if job is None:
            return b""
        engine.cancel(job, reason)
        await self._durable()
        return _DONE

    async def _answer_retry(self, link: PeerLink, content: bytes) -> bytes:
        handle, _ = _orders.decode(content)
        engine = self._tick_loop.begin_tick()
        job = engine.find_dead(handle)
        if job is None:
            return b""
        try:
            engine.retry(job)
        except DuplicateKeyError:
            return _KEY_IN_USE
        await self._durable()
        return _KEY_IN_USE if engine.find_dead(handle) is job else _DONE  # the store knows of the others' keys

    async def _answer_delete(self, link: PeerLink, content: bytes) -> bytes:
        handle, _ = _orders.decode(content)
        engine = self._tick_loop.begin_tick()
        job = engine.find_dead(handle)
        if job is None:
            return b""
        engine.delete(job)
        await self._durable()
        return _DONE

    async def _durable(self) -> None:
        try:
            await self._tick_loop.durable()
        except NotDurableError as error:
            raise PeerError("the change could not be written to the store") from error


def _without_link(answerer: Answerer) -> PeerAnswerer:
    return lambda link, content: answerer(content)


def _with_node(hearer: Hearer) -> PeerHearer:
    return lambda link, content: hearer(link.node, content)


def _of_link(call: Callable[[int], None]) -> Callable[[PeerLink], None]:
    return lambda link: call(link.node)


def _find(engine: Engine, name: JobName) -> LiveJob | None:
    if name.function:
        return _own(engine, job_names.find(engine, name.function, name.unique or name.handle))
    if name.unique:
        return _own(engine, engine.find_unique(name.unique))
    return _own(engine, engine.find(name.handle)) or engine.find_dead(name.handle)


def _own(engine: Engine, job: LiveJob | None) -> LiveJob | None:
    """The job, if this server is its home."""
    return job if job is not None and job.id not in engine.borrowed else None


def _description(job: LiveJob, node: int) -> DistantJob:
    progress = job.progress[:3] if job.progress is not None else (0, 0, 0)
    clients = len(job.watchers or ())
    return DistantJob(
        node, job.id, job.handle, job.function, int(job.state), job.state is RUNNING, *progress, clients=clients
    )
