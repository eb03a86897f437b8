"""The simulation of clusters: a few hundred schedules without a fault, and bugs that it has to find."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from campaigns.membership import __main__ as campaign
from campaigns.membership.mutants import MUTANTS
from campaigns.membership.schedule import HEALTHY, Schedule
from campaigns.membership.totals import Totals

SEED = 20261117
# Those that a few hundred schedules find. The others need thousands, or servers that do the same at once: `--mutant`.
QUICKLY_FOUND = (
    "accuses-without-comparing",
    "commits-without-fence",
    "lapses-late",
    "passes-older-databases",
    "two-leaders",
)
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
    totals = Totals()
    assert campaign.run(range(150), SEED, campaign.Size(), HEALTHY, totals)
    assert len(totals.faults) == 12, "every kind of fault has occurred"
    assert min(totals.counts[name] for name in ("fenced", "takes", "commits in doubt", "runs of schedules")) > 0


def test_more_servers() -> None:
    assert campaign.run(range(2), SEED, campaign.Size(12), HEALTHY, Totals())


def test_episodes_of_a_larger_cluster() -> None:
    """Each of them is counted, and every kind of fault of a single server occurs."""
    totals = Totals()
    assert campaign.run(range(1), SEED, campaign.Size(30, 150), HEALTHY, totals)
    assert totals.episodes == sum(totals.faults.values())
    assert totals.episodes > 130, "of 150, some find no server that runs"
    assert len(totals.faults) >= 8
    assert " with 1" in totals.progress()


@pytest.mark.parametrize("name", ["lapses-late", "takes-what-is-taken"])
def test_a_bug_is_found_by_episodes(capsys: pytest.CaptureFixture[str], name: str) -> None:
    size = campaign.Size(30, 150)
    assert not campaign.run(range(20), SEED, size, MUTANTS[name], Totals())
    assert "--nodes 30 --episodes 150 --only " in capsys.readouterr().out


def test_no_schedule_begins_when_the_time_is_over() -> None:
    totals = Totals()
    assert campaign.run(range(5), SEED, campaign.Size(), HEALTHY, totals, seconds=-1.0)
    assert not totals.schedules


def test_a_run_that_was_ended_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notes = tmp_path / "run.json"
    words = ["--seed", "7", "--notes", str(notes), "--schedules"]
    assert campaign.main([*words, "2"]) == 0
    assert campaign.main([*words, "5"]) == 0
    in_parts = capsys.readouterr().out.splitlines()
    assert campaign.main(["--seed", "7", "--schedules", "5"]) == 0
    at_once = capsys.readouterr().out.splitlines()
    assert in_parts[-2:] == at_once[-2:], "faults and counts"
    assert in_parts[-3].startswith("5 schedules, ")
    with pytest.raises(SystemExit, match="another run"):
        campaign.main(["--seed", "8", "--notes", str(notes)])


@pytest.mark.parametrize("words", [[], ["--mutant", "lapses-late"]], ids=["healthy", "broken"])
def test_processes_share_out_the_same_schedules(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    words = ["--seed", str(SEED), "--schedules", "45", *words]
    code = campaign.main(words)
    alone = capsys.readouterr().out.splitlines()
    assert campaign.main([*words, "--processes", "2"]) == code
    shared = capsys.readouterr().out.splitlines()
    assert shared[:-3] + shared[-2:] == alone[:-3] + alone[-2:], "all but the seconds"


def test_notes_name_the_next_schedule_when_the_time_is_over() -> None:
    noted: list[int] = []
    arguments = (SEED, campaign.Size(), HEALTHY, Totals())
    assert campaign.run(range(3, 5), *arguments, seconds=-1.0, note=noted.append)
    assert campaign.run(range(3, 5), *arguments, note=noted.append)
    assert noted == [3, 5]


@pytest.mark.parametrize("number", range(2))
def test_what_the_database_keeps_at_hand_is_what_a_whole_scan_finds(number: int) -> None:
    schedule = Schedule(f"{SEED}/{number}", servers=12, episodes=40)

    def scan() -> None:
        assert schedule.database.problems() == []
        schedule.world.after(schedule.beat / 3, scan)

    schedule.world.after(0.0, scan)
    schedule.run()


def test_a_schedule_can_be_repeated() -> None:
    first, second = Schedule("7/1"), Schedule("7/1")
    first.run()
    second.run()
    assert (first.world.steps, first.database.nodes) == (second.world.steps, second.database.nodes)


@pytest.mark.parametrize("name", QUICKLY_FOUND)
def test_a_bug_is_found(name: str) -> None:
    assert not campaign.run(range(MOST_SCHEDULES), SEED, campaign.Size(), MUTANTS[name], Totals())


def test_a_fault_says_how_to_repeat_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert campaign.main(["--seed", str(SEED), "--mutant", "lapses-late"]) == 1
    output = capsys.readouterr().out
    assert "could still assign jobs" in output
    assert f"python -m campaigns.membership --seed {SEED} --nodes 0 --only " in output
