"""The simulation of clusters: a few hundred schedules without a fault, and bugs that it has to find."""

import logging
from collections.abc import Iterator

import pytest

from campaigns.membership import __main__ as campaign
from campaigns.membership.mutants import MUTANTS
from campaigns.membership.schedule import Schedule

SEED = 20261117
# Those that a few hundred schedules find. The others need thousands: `--mutant`.
QUICKLY_FOUND = ("accuses-without-comparing", "commits-without-fence", "lapses-late", "two-leaders")
MOST_SCHEDULES = 5000


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """What the servers log in a fault is not looked at."""
    logger = logging.getLogger("geartrain")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(level)


def test_no_rule_is_broken() -> None:
    totals = campaign.Totals()
    assert campaign.run(range(150), SEED, 0, campaign.HEALTHY, totals)
    assert len(totals.faults) == 10, "every kind of fault has occurred"
    assert min(totals.counts[name] for name in ("fenced", "takes", "commits in doubt", "runs of schedules")) > 0


def test_more_servers() -> None:
    assert campaign.run(range(2), SEED, 12, campaign.HEALTHY, campaign.Totals())


def test_a_schedule_can_be_repeated() -> None:
    first, second = Schedule("7/1"), Schedule("7/1")
    first.run()
    second.run()
    assert (first.world.steps, first.database.nodes) == (second.world.steps, second.database.nodes)


@pytest.mark.parametrize("name", QUICKLY_FOUND)
def test_a_bug_is_found(name: str) -> None:
    assert not campaign.run(range(MOST_SCHEDULES), SEED, 0, MUTANTS[name], campaign.Totals())


def test_a_fault_says_how_to_repeat_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert campaign.main(["--seed", str(SEED), "--mutant", "lapses-late"]) == 1
    output = capsys.readouterr().out
    assert "could still assign jobs" in output
    assert f"python -m campaigns.membership --seed {SEED} --nodes 0 --only " in output
