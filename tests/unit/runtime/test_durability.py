"""Waiting for the disk: by ticket, by callback, and with `await`."""

import asyncio

import pytest

from geartrain.errors import NotDurableError
from geartrain.runtime.durability import CommitWaiter, Durability


class Waiter(CommitWaiter):
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[int, bool]] = []

    def commit_ended(self, ticket: int, failed: bool) -> None:
        self.told.append((ticket, failed))


def test_without_changes_nobody_waits() -> None:
    durability, waiter = Durability(), Waiter()
    assert durability.ticket(waiter) == 0
    heard: list[bool] = []
    durability.call_when_durable(heard.append)
    assert heard == [False]
    asyncio.run(durability.durable())


def test_tickets_of_one_batch_are_the_same_and_end_with_its_commit() -> None:
    durability, first, second, third = Durability(), Waiter(), Waiter(), Waiter()
    durability.changed()
    ticket = durability.ticket(first)
    assert durability.ticket(first) == ticket
    durability.begin_commit()
    assert durability.ticket(second) == ticket, "nothing has changed since: it is being written"
    durability.changed()
    assert durability.ticket(third) == ticket + 1
    durability.end_commit(failed=False)
    assert (first.told, second.told, third.told) == ([(ticket, False)], [(ticket, False)], [])
    durability.begin_commit()
    durability.end_commit(failed=False)
    assert third.told == [(ticket + 1, False)]
    assert durability.ticket(first) == 0


def test_a_failure_ends_the_tickets_that_were_taken_meanwhile() -> None:
    durability, first, second = Durability(), Waiter(), Waiter()
    durability.changed()
    ticket = durability.ticket(first)
    durability.begin_commit()
    durability.changed()
    assert durability.ticket(second) == ticket + 1
    durability.end_commit(failed=True)
    assert (first.told, second.told) == ([(ticket + 1, True)], [(ticket + 1, True)])
    assert durability.ticket(first) == ticket + 2, "the changes that were not undone are yet to be written"


@pytest.mark.parametrize("failed", [False, True])
def test_durable_returns_when_the_commit_has_ended(failed: bool) -> None:
    async def story() -> None:
        durability = Durability()
        durability.changed()
        waiting = asyncio.ensure_future(durability.durable())
        await asyncio.sleep(0)
        durability.begin_commit()
        await asyncio.sleep(0)
        assert not waiting.done()
        durability.end_commit(failed)
        await waiting

    if failed:
        with pytest.raises(NotDurableError, match="log"):
            asyncio.run(story())
    else:
        asyncio.run(story())


def test_who_stops_waiting_disturbs_nobody() -> None:
    async def story() -> None:
        durability = Durability()
        durability.changed()
        gone, patient = (asyncio.ensure_future(durability.durable()) for _ in range(2))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        durability.begin_commit()
        durability.end_commit(failed=False)
        await patient
        assert gone.cancelled()

    asyncio.run(story())
