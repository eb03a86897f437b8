"""Who has a unique key: what a server answers about a job of its own, and what it makes of another one's answer."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from geartrain.doors.connection import Connection
from geartrain.doors.door import Limits
from geartrain.doors.peer import key_holders, mirrors
from geartrain.doors.peer.connection import PeerConnection
from geartrain.doors.peer.door import Options, PeerDoor, PeerError
from geartrain.doors.peer.link import PeerLink
from geartrain.engine.job import LiveJob
from geartrain.errors import StoreError
from geartrain.model import JobState
from geartrain.store.contract import CommitOutcome, Twin
from geartrain.wire import peer as wire
from tests.unit.runtime.committer_scene import Scene, Story, Wire, play

OTHER_NODE = 7
TWIN = Twin((OTHER_NODE << 32) + 1, b"H:other:30064771073")
YES, NO = b"yes", b""
A_MINUTE = 60.0  # longer than the answer of another server is waited for

Play = Callable[[Story], None]


@pytest.fixture(name="play")
def _play(tmp_path: Path) -> Play:
    return partial(play, tmp_path / "jobs.db")


class OtherServer(Wire):
    """The other end of a link: it hears frames, and answers when it is told to."""

    @property
    def questions(self) -> list[Any]:
        reader = wire.Reader(1 << 20)
        reader.feed(b"".join(self.heard))
        questions = []
        while reader.next():
            frame = reader.frame()
            if isinstance(frame, wire.Ask):
                questions.append(frame)
        return questions


def share(scene: Scene) -> PeerDoor:
    """Make the server one of several."""
    scene.engine.reserves_keys = True
    scene.committer.on_renewed = lambda: None
    return PeerDoor(scene.tick_loop, Limits(), Options(1, "one", b"secret", 2.0, cast(Any, None)))


def link_other(scene: Scene, door: PeerDoor) -> tuple[PeerLink, OtherServer]:
    scene.committer.on_twin = mirrors.handler(door.mirrors, door.key_holders)
    other, connection = OtherServer(), PeerConnection(door)
    connection.connection_made(other)
    link = door.link(OTHER_NODE, "other")
    link.open(connection)
    return link, other


def submit(scene: Scene, connection: Connection) -> LiveJob:
    job = scene.engine.submit(b"f", b"key", b"payload", background=True)
    connection.acknowledge_job(job, lambda handle: handle + b";", b"no;")
    return job


def ask(door: PeerDoor, handle: bytes) -> "asyncio.Future[bytes]":
    """Another server asks whether that job has its key."""
    return asyncio.ensure_future(door.answerers[key_holders.HOLDS_KEY](door.link(OTHER_NODE, "other"), handle))


@pytest.mark.parametrize(("outcome", "word"), [(CommitOutcome({}), YES), (None, NO)], ids=["its own", "another's"])
def test_answer_waits_until_the_store_has_accepted_the_key(
    play: Play, outcome: CommitOutcome | None, word: bytes
) -> None:
    """The store may have failed over meanwhile, and a third server may have the key in the older state of it."""

    async def story(s: Scene) -> None:
        door = share(s)
        connection, wire = s.connect()
        s.store.hold()
        job = submit(s, connection)
        await s.writing()
        answer = ask(door, job.handle)
        await s.ticks()
        assert not answer.done()
        s.store.outcomes = [outcome or CommitOutcome({job.id: TWIN})]
        s.store.let_all()
        assert await answer == word
        await s.until(lambda: wire.heard == [(job.handle if word == YES else TWIN.handle) + b";"])

    play(story)


def test_nothing_is_answered_if_the_store_cannot_be_written(play: Play) -> None:
    async def story(s: Scene) -> None:
        door = share(s)
        connection, _ = s.connect()
        s.store.hold()
        job = submit(s, connection)
        await s.writing()
        answer = ask(door, job.handle)
        await s.ticks()
        s.store.failures = [StoreError("the disk is full")]
        s.store.let_all()
        with pytest.raises(PeerError, match="could not be written"):
            await answer

    play(story)


def test_job_that_is_durable_has_its_key(play: Play) -> None:
    async def story(s: Scene) -> None:
        door = share(s)
        connection, wire = s.connect()
        job = submit(s, connection)
        await s.until(lambda: bool(wire.heard))
        s.store.hold()
        s.submit(connection, b"another")
        await s.writing()
        assert await ask(door, job.handle) == YES

    play(story)


def test_store_is_asked_again_if_the_home_does_not_know(play: Play) -> None:
    """It cannot commit: the job that had the key may have ended there, and nobody would run this one."""

    async def story(s: Scene) -> None:
        door = share(s)
        link, other = link_other(s, door)
        connection, wire_out = s.connect()
        s.store.hold()
        job = submit(s, connection)
        s.store.outcomes = [CommitOutcome({job.id: TWIN})]
        s.store.let_all()
        await s.until(lambda: len(other.questions) == 1)
        door.take_answer(link, other.questions[0].number, wire.Answer(other.questions[0].number, b"", "no commit"))
        await s.until(lambda: wire_out.heard == [job.handle + b";"])
        assert job.state is JobState.QUEUED

    play(story)


def test_submission_is_refused_if_the_home_does_not_know_for_long(play: Play) -> None:
    async def story(s: Scene) -> None:
        door = share(s)
        link, other = link_other(s, door)
        connection, wire_out = s.connect()
        s.store.hold()
        job = submit(s, connection)
        s.store.outcomes = [CommitOutcome({job.id: TWIN})]
        s.store.let_all()
        await s.until(lambda: len(other.questions) == 1)
        job.submitted_at -= A_MINUTE
        door.take_answer(link, other.questions[0].number, wire.Answer(other.questions[0].number, b"", "no commit"))
        await s.until(lambda: wire_out.heard == [b"no;"])
        assert not s.engine.jobs

    play(story)
