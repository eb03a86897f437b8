"""Who takes which turn among the Python task queues, and the table of it, with runs that start nothing."""

from collections.abc import Mapping

import pytest

from bench import groups, queue_runs, queues, report, run, task_queues
from bench.figures import Sample
from bench.groups import Turn
from bench.queue_runs import DURABLE, MEMORY, Queue
from bench.queues_report import factors

CHOSEN = [queue for queue in queue_runs.QUEUES if queue.ours or queue.name in ("RQ", "arq")]
RATES = {DURABLE: (30.0, 20.0, 60.0), MEMORY: (40.0, 40.0, 40.0), "RQ": (10.0, 10.0, 10.0), "arq": (1.0, 1.0, 1.0)}
ORDER: list[tuple[str, str]] = []


def fake_run(*figures: str) -> task_queues.Run:
    """A run whose figures are those above, one for each round."""

    def measure(queue: Queue, seconds: float, appendfsync: str) -> Mapping[str, Sample]:
        number = ORDER.count((queue.name, figures[0]))
        ORDER.append((queue.name, figures[0]))
        if (queue.name, figures[0]) == ("arq", "processes") or (queue.name, figures[0], number) == ("RQ", "retries", 2):
            raise queue_runs.NoFigureError("it ended")
        return {figure: Sample(RATES[queue.name][number]) for figure in figures}

    return measure


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> report.Board:
    """Three rounds of all rows."""
    ORDER.clear()
    monkeypatch.setattr(task_queues, "RUNS", [(fake_run(*figures), figures) for _, figures in task_queues.RUNS])
    group = task_queues.TaskQueues(CHOSEN)
    made = report.Board([group], frozenset(row.key for row in group.rows))
    run.measure(made, groups.QUICK._replace(rounds=3), {})
    return made


def test_each_round_begins_with_another(board: report.Board) -> None:
    submitted = [name for name, figure in ORDER if figure == "submit"]
    assert submitted == [
        *[DURABLE, MEMORY, "RQ", "arq"],
        *[MEMORY, "RQ", "arq", DURABLE],
        *["RQ", "arq", DURABLE, MEMORY],
    ]


def test_only_wanted_rows_are_measured() -> None:
    group = task_queues.TaskQueues(CHOSEN)
    turn = Turn(0, groups.QUICK, frozenset({"queues-work", "queues-retries"}), {})
    assert group.count(turn) == 2 * len(CHOSEN)
    found = [figure for step in group.steps(turn) for figure in step.figures]
    assert {key for key, _ in found} == {"queues-work", "queues-retries"}


def test_rows_that_only_some_can_do() -> None:
    group = task_queues.TaskQueues(CHOSEN)
    turn = Turn(0, groups.QUICK, frozenset({"queues-chords"}), {})
    assert [step.figures[0][1] for step in group.steps(turn)] == [DURABLE, MEMORY]
    assert group.count(turn) == 2


def test_without_redis_ours_stand_alone() -> None:
    group = task_queues.TaskQueues(CHOSEN)
    turn = Turn(0, groups.QUICK, frozenset({"queues-submit"}), {"redis-server": "not installed"})
    assert [step.figures[0][1] for step in group.steps(turn)] == [DURABLE, MEMORY]


def test_the_table_has_medians_ranges_versions_durability_and_words(board: report.Board) -> None:
    where = {queue.name: task_queues.where(queue.name, "everysec") for queue in CHOSEN}
    lines = list(factors.table(board, board.groups[0], DURABLE, {"RQ": "2.12"}, where))
    cells = {line.split(" | ")[0].strip("| "): [each.strip("| ") for each in line.split(" | ")[1:]] for line in lines}
    whole, two = "3.00 (2.00 to 6.00)", "2.50 (2.00 to 3.00), finished in 2 of 3 rounds"
    assert cells["RQ 2.12"] == [
        *["on disk within a second (appendfsync everysec)", whole, whole, whole, "has none", two, whole]
    ]
    assert cells[MEMORY][:2] == ["in the server's memory", "0.75 (0.50 to 1.50)"]
    starred = "30.0 (20.0 to 60.0) \\*"
    assert cells["arq"][3:] == [starred, "has none", starred, "did not finish"]
    assert any(line.startswith("\\* arq, empty tasks finished by 10") and "cannot" in line for line in lines)


def test_the_front_table_says_in_words_what_one_cannot(board: report.Board) -> None:
    text = "\n".join(report.table(board))
    assert "    arq does not retry an exception" in text


@pytest.mark.parametrize("words", [["--rounds", "-1"], ["--seconds", "-2"], ["--only", "nobody"]])
def test_what_cannot_be_meant_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        queues.main(words)
    assert refused.value.code == 2
    assert "error:" in capsys.readouterr().err
