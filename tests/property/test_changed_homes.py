"""A job whose home is gone while another server runs it: its new home hears what became of it, whatever happened."""

import pytest

from geartrain import compiled
from geartrain.doors.peer.link import PeerLink
from geartrain.engine.job import LiveJob
from geartrain.engine.lifecycle import QUEUED, RUNNING
from geartrain.server.peers import LinkedServers
from geartrain.store.shared import IdRange
from tests.property.linked import GRACE, NODE_BITS, PlayedServer, PlayedWorker, World

pytestmark = pytest.mark.skipif(compiled.form() == "compiled", reason="the run as plain Python has it")

HOME, BORROWER, TAKER = range(3)
FUNCTION = b"f"


def lend(world: World) -> tuple[PlayedWorker, LiveJob]:
    """A job of one server that a worker of another has, and that worker."""
    home, borrower, _ = world.servers
    worker = PlayedWorker(borrower)
    borrower.engine.register(worker, FUNCTION)
    borrower.engine.sleep(worker)
    borrower.end_tick()
    world.deliver_all()
    job = home.engine.submit(FUNCTION, b"", b"payload", background=True)
    home.end_tick()
    world.deliver_all()
    borrowed = borrower.engine.claim(worker)
    assert borrowed is not None
    return worker, job


def end(worker: PlayedWorker) -> None:
    [job] = worker.running.jobs()
    worker.server.engine.complete(worker, job, b"result")
    worker.server.end_tick()


def take_over(world: World, job: LiveJob, runs_at: PeerLink | None, by: int = TAKER) -> LiveJob:
    """The job, restored by the third server, or another one, from the store."""
    taker = world.servers[by]
    stored = LiveJob(
        job.id, job.handle, job.function, job.unique, job.payload, job.priority, True, job.run_at, job.submitted_at,
        job.door,
    )  # fmt: skip
    taker.books.accepted(stored)
    servers = LinkedServers(taker.door)
    servers._holders = {} if runs_at is None else {job.id: runs_at}
    servers.restore([stored])
    taker.end_tick()
    world.deliver_all()
    return stored


def whole_range(server: PlayedServer) -> IdRange:
    return IdRange(server.node << NODE_BITS, (server.node + 1) << NODE_BITS)


def link(world: World) -> PeerLink:
    """The taker's to the borrower."""
    return world.servers[TAKER].door.links[world.servers[BORROWER].node]


def test_end_that_the_old_home_has_not_heard_of() -> None:
    world = World(3)
    worker, job = lend(world)
    world.cut(HOME, BORROWER)
    end(worker)
    assert world.servers[BORROWER].door.loans_in(*whole_range(world.servers[HOME])) == [job.id]
    take_over(world, job, link(world))
    assert world.servers[TAKER].books.ended == {job.id: "DONE"}


def test_job_goes_on_for_its_new_home() -> None:
    world = World(3)
    worker, job = lend(world)
    world.cut(HOME, BORROWER)
    assert take_over(world, job, link(world)).state is RUNNING
    end(worker)
    world.deliver_all()
    assert world.servers[TAKER].books.ended == {job.id: "DONE"}


def test_job_is_queued_again_if_its_end_was_lost_with_the_old_home() -> None:
    """The old home had given up the link, and does not know yet that it is fenced: it has no use for the end."""
    world = World(3)
    worker, job = lend(world)
    world.cut(HOME, BORROWER)
    end(worker)
    runs_at = link(world)  # as the borrower has answered the taker
    world.pass_time(GRACE + 0.1)
    world.connect(HOME, BORROWER)
    world.deliver_all()
    assert world.servers[BORROWER].door.loans_in(*whole_range(world.servers[HOME])) == []
    restored = take_over(world, job, runs_at)
    assert restored.state is QUEUED
    assert restored.attempts == 0, "this server has not begun any"


def lend_again(world: World) -> tuple[PlayedWorker, LiveJob]:
    """As `lend`, for the second time: the first worker has vanished, which the home has heard, and not yet stored."""
    worker, job = lend(world)
    home, borrower, _ = world.servers
    home.tick_loop.durability.changed()
    borrower.engine.remove_worker(worker)
    borrower.end_tick()
    world.deliver_all()
    second = PlayedWorker(borrower)
    borrower.engine.register(second, FUNCTION)
    borrower.engine.sleep(second)
    borrower.end_tick()
    world.deliver_all()
    assert borrower.engine.claim(second) is not None
    return second, job


def test_borrower_becomes_the_home_of_a_job_that_was_lent_to_it_twice() -> None:
    world = World(3)
    worker, job = lend_again(world)
    borrower = world.servers[BORROWER]
    world.cut(HOME, BORROWER)
    stored = take_over(world, job, None, BORROWER)
    running = borrower.engine.jobs.get(job.id)
    assert running is not None
    assert running is not stored
    assert running.owner is worker
    borrower.engine.remove_worker(worker)
    assert borrower.engine.jobs.get(job.id) is running
    assert running.state is QUEUED


def test_job_that_was_lent_twice_goes_on_for_its_new_home() -> None:
    world = World(3)
    worker, job = lend_again(world)
    world.cut(HOME, BORROWER)
    assert take_over(world, job, link(world)).state is RUNNING
    end(worker)
    world.deliver_all()
    assert world.servers[TAKER].books.ended == {job.id: "DONE"}


@pytest.mark.parametrize("taker", [BORROWER, TAKER])
def test_of_two_verdicts_the_last_one_counts(taker: int) -> None:
    world = World(3)
    worker, job = lend_again(world)
    world.cut(HOME, BORROWER)
    end(worker)
    take_over(world, job, link(world) if taker == TAKER else None, taker)
    assert world.servers[taker].books.ended == {job.id: "DONE"}
