"""Whether a batch waits for the clients that the last commit has answered."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from geartrain.runtime.commit_timing import CommitTiming
from tests.unit.runtime.committer_scene import NOW, Scene, Story, play

COMMIT = 0.1  # how long a commit takes
SOON = 0.01  # how long it takes until clients are back that submit again
LATE = 0.09


class Times:
    """A server with as many clients, and what the timing says of it."""

    def __init__(self) -> None:
        self.timing = CommitTiming()
        self.now = NOW

    def commit(self, waiting: int, expected: int) -> None:
        """So many wait for a commit; when it ends, so many would wait for the next one."""
        self.timing.begin_commit(waiting, self.now)
        self.now += COMMIT
        self.timing.end_commit(expected, self.now)

    def settle(self) -> None:
        """Two clients submit again and again, and are soon back each time."""
        for _ in range(10):
            self.commit(waiting=2, expected=2)
            self.come_back(2, after=SOON)

    def come_back(self, waiting: int, after: float) -> None:
        """After some time so many wait for the next commit."""
        self.now += after
        self.timing.observe(waiting, self.now)

    @property
    def patience(self) -> float:
        return self.timing.patience(self.now)


@pytest.fixture
def times() -> Times:
    return Times()


def test_nobody_is_waited_for_at_first(times: Times) -> None:
    assert times.patience == 0.0
    times.commit(waiting=1, expected=2)
    assert times.patience == 0.0


def test_clients_that_were_soon_back_are_waited_for_until_they_are_back(times: Times) -> None:
    times.settle()
    times.commit(waiting=2, expected=2)
    assert 0.0 < times.patience < COMMIT
    times.come_back(1, after=SOON / 2)
    assert 0.0 < times.patience < COMMIT
    times.come_back(2, after=SOON / 2)
    assert times.patience == 0.0


def test_clients_that_were_late_are_not_waited_for(times: Times) -> None:
    times.settle()
    times.commit(waiting=2, expected=2)
    times.come_back(2, after=LATE)
    times.commit(waiting=2, expected=2)
    assert times.patience == 0.0


def test_clients_that_are_late_now_and_then_are_not_waited_for(times: Times) -> None:
    """As those are that submit at random times, whatever the others do."""
    for _ in range(10):
        times.settle()
        times.commit(waiting=2, expected=2)
        times.come_back(2, after=5 * LATE)
        for _ in range(2):
            times.commit(waiting=2, expected=2)
            assert times.patience == 0.0
            times.come_back(2, after=SOON)


def test_nobody_is_waited_for_longer_than_some_times_the_last_time(times: Times) -> None:
    times.settle()
    times.commit(waiting=2, expected=2)
    times.come_back(1, after=5 * SOON)
    assert times.patience == 0.0


def test_after_somebody_did_not_come_back_nobody_is_waited_for(times: Times) -> None:
    times.settle()
    times.commit(waiting=2, expected=2)
    times.commit(waiting=1, expected=1)
    assert times.patience == 0.0
    for _ in range(4):
        times.come_back(1, after=SOON)
        times.commit(waiting=1, expected=1)
    assert times.patience > 0.0, "all who were there since are fast"


def test_those_who_are_back_during_the_next_commit_count(times: Times) -> None:
    """Of four clients two wait already, which are committed at once; the others come back meanwhile."""
    times.commit(waiting=2, expected=4)
    for _ in range(10):
        times.timing.begin_commit(2, times.now)
        times.come_back(2, after=SOON)
        times.now += COMMIT
        times.timing.end_commit(4, times.now)
    assert times.patience > 0.0


@pytest.mark.parametrize("moved", [-1000.0, 1000.0])
def test_a_clock_that_was_set_is_no_reason_to_wait_long(times: Times, moved: float) -> None:
    times.settle()
    times.now += moved
    times.commit(waiting=2, expected=2)
    times.now += moved
    assert times.patience <= COMMIT
    times.come_back(2, after=moved)
    times.commit(waiting=2, expected=2)
    assert times.patience <= COMMIT


def test_nobody_is_waited_for_long_however_slow_the_disk_is(times: Times) -> None:
    times.settle()
    times.commit(waiting=2, expected=2)
    times.come_back(2, after=1.0)
    times.timing.begin_commit(2, times.now)
    times.now += 60.0
    times.timing.end_commit(2, times.now)
    assert 0.0 < times.patience < 1.0


Play = Callable[[Story], None]


@pytest.fixture(name="play")
def _play(tmp_path: Path) -> Play:
    return partial(play, tmp_path / "jobs.db")


async def _take_turns(s: Scene) -> list[int]:
    """Two clients, each of which submits again when it has its acknowledgement; how many jobs each commit had.

    The second one begins during the first one's commit, so that they would take turns for ever.
    """
    now = [NOW]
    s.tick_loop.clock = lambda: now[0]
    clients = [s.connect() for _ in range(2)]
    s.store.hold()
    s.submit(clients[0][0], b"first")
    await s.writing()
    s.submit(clients[1][0], b"second")
    heard = [0, 0]
    for _ in range(12):
        now[0] += COMMIT
        s.store.let_one()
        answered = list(heard)
        await s.until(lambda: [len(wire.heard) for _, wire in clients] != answered)  # noqa: B023
        heard = [len(wire.heard) for _, wire in clients]
        now[0] += SOON
        for (connection, _), before, after in zip(clients, answered, heard, strict=True):
            if after > before:
                s.submit(connection, b"again")
        await s.writing()
    s.store.let_all()
    return [len(batch.saved_jobs) for batch in s.store.tried]


def test_clients_that_would_take_turns_share_commits(play: Play) -> None:
    async def story(s: Scene) -> None:
        commits = await _take_turns(s)
        assert sorted(commits) == commits
        assert commits[-3:] == [2, 2, 2]

    play(story)


def test_a_client_that_stays_away_delays_one_commit_and_no_more(play: Play) -> None:
    async def story(s: Scene) -> None:
        await _take_turns(s)
        await s.idle()
        begun = len(s.store.tried)
        connection, wire = s.connect()
        for count in range(1, 4):
            s.submit(connection, b"alone")
            await s.until(lambda: len(wire.heard) == count)  # noqa: B023
        assert [len(batch.saved_jobs) for batch in s.store.tried[begun:]] == [1, 1, 1]

    play(story)
