"""cancel, retry and delete for all jobs that match a filter."""

import time
from pathlib import Path

import pytest

from tests.acceptance.cli.conftest import Geartrain, run
from tests.support import process, serving
from tests.support.gearman_peer import Kind, worker

USAGE = 2


def submitted(geartrain: Geartrain, function: str, *payloads: str, options: tuple[str, ...] = ()) -> list[str]:
    lines = "\n".join(payloads).encode()
    return geartrain("submit", function, "--lines", *options, stdin=lines).text.split()


def states(geartrain: Geartrain, function: str) -> list[str]:
    return [job["state"] for job in geartrain("jobs", "--function", function, "--json").json_lines]


def test_filter_selects_the_jobs(geartrain: Geartrain) -> None:
    submitted(geartrain, "chosen", "apple", "pear", "apple pie")
    submitted(geartrain, "chosen", "apple", options=("--delay", "1h"))
    submitted(geartrain, "spared", "apple")
    assert geartrain("cancel", "--function", "chosen", "--search", "apple").text == "3 jobs cancelled\n"
    assert states(geartrain, "chosen") == ["cancelled", "cancelled", "queued", "cancelled"]
    assert states(geartrain, "spared") == ["queued"]
    report = geartrain("cancel", "--function", "chosen", "--state", "queued", "--json").json
    assert report == {"done": 1, "refused": 0}


def test_dry_run_lists_and_changes_nothing(geartrain: Geartrain) -> None:
    handles = submitted(geartrain, "listed", *map(str, range(60)))
    done = geartrain("cancel", "--function", "listed", "--dry-run")
    assert len(done.text.splitlines()) == 51
    assert "60 jobs would be cancelled" in done.err
    listed = geartrain("cancel", "--function", "listed", "--dry-run", "--json").json_lines
    assert [job["handle"] for job in listed] == handles[::-1]
    assert set(states(geartrain, "listed")) == {"queued"}


def test_a_filter_that_leaves_out_nothing_needs_a_yes(geartrain: Geartrain) -> None:
    submitted(geartrain, "all", "a", "b")
    assert "add --yes" in geartrain("cancel", "--state", "queued", code=1).err
    assert "queued" in states(geartrain, "all")
    geartrain("cancel", "--state", "queued", "--yes")
    assert states(geartrain, "all") == ["cancelled", "cancelled"]


@pytest.mark.parametrize(
    "words",
    [
        ["cancel"],
        ["cancel", "H:1", "--state", "queued"],
        ["cancel", "H:1", "--dry-run"],
        ["cancel", "--state", "done"],
        ["cancel", "--state", "waiting"],
        ["cancel", "--function", "f", "--since", "lately"],
    ],
)
def test_wrong_usage(geartrain: Geartrain, words: list[str]) -> None:
    geartrain(*words, code=USAGE)


def test_dead_jobs_are_retried_and_deleted(tmp_path: Path) -> None:
    with serving.serve("--listen", "gearman://127.0.0.1:0", "--max-attempts", "1") as server:
        for name in ("one", "one", "two"):
            run(server.url, "submit", name)
        for name in (b"one", b"one", b"two"):
            with worker(server.port, name) as peer:
                peer.grab()
        deadline = time.monotonic() + process.PATIENCE
        while len(run(server.url, "jobs", "--state", "dead", "--json").json_lines) < 3:
            assert time.monotonic() < deadline
        assert run(server.url, "retry", "--function", "one", "--since", "1h").text == "2 jobs queued again\n"
        assert run(server.url, "delete", "--function", "two").text == "1 job deleted\n"
        assert run(server.url, "jobs", "--state", "dead", "--json").out == b""


def test_failed_jobs_are_retried_and_deleted(server: serving.ServerProcess, geartrain: Geartrain) -> None:
    submitted(geartrain, "faulty", "a", "b", "c")
    with worker(server.port, b"faulty") as peer:
        for _ in range(3):
            peer.send(Kind.WORK_FAIL, peer.grab().handle)
        peer.take()  # nothing more, so the failures have arrived
    assert "3 jobs would be queued again" in geartrain("retry", "--function", "faulty", "--dry-run").err
    assert geartrain("retry", "--state", "failed", "--function", "faulty", "--search", "a").code == 0
    assert geartrain("delete", "--function", "faulty").text.endswith("deleted\n")
    assert set(states(geartrain, "faulty")) <= {"queued"}


def test_reasons_select_the_jobs(tmp_path: Path) -> None:
    """As the dashboard groups them: what differs from job to job in a reason does not count."""
    store = f"sqlite://{tmp_path}/jobs.db"
    with serving.serve("--listen", "gearman://127.0.0.1:0", "--store", store) as server:
        reasons = (b"KeyError: 'order-1'", b"KeyError: 'order-2'", b"timeout after 3 s", b"KeyError: 'order-3'")
        for _ in reasons:
            run(server.url, "submit", "picky")
        with worker(server.port, b"picky") as peer:
            for reason in reasons:
                peer.send(Kind.WORK_EXCEPTION, peer.grab().handle, reason)
            peer.take()  # nothing more, so the failures have arrived
        same = ("--reason", "KeyError: 'order-99'")
        found = run(server.url, "jobs", *same, "--json").json_lines
        assert [job["reason"].encode() for job in found] == [reasons[3], reasons[1], reasons[0]]
        one = ("--handle", found[0]["handle"], "--json")
        assert len(run(server.url, "jobs", *same, *one).json_lines) == 1
        assert run(server.url, "jobs", "--reason", "timeout after # s", *one).out == b""
        assert "3 jobs would be queued again" in run(server.url, "retry", *same, "--dry-run").err
        assert run(server.url, "delete", "--reason", "timeout after 5 s").text == "1 job deleted\n"
        assert run(server.url, "retry", *same).text == "3 jobs queued again\n"
        assert run(server.url, "jobs", *same, "--json").out == b""
        with worker(server.port, b"picky") as peer:
            peer.send(Kind.WORK_EXCEPTION, peer.grab().handle, reasons[0])
            peer.take()
        server.stop()
    stored = serving.run_command(tmp_path, "jobs", "--store", store, *same, "--json")
    assert stored.stdout.count("\n") == 1


def test_a_retried_job_keeps_its_failed_attempts(server: serving.ServerProcess, geartrain: Geartrain) -> None:
    """The counter of attempts begins anew; the attempts before the retry stay listed, in their order."""
    (handle,) = submitted(geartrain, "again", "x")
    with worker(server.port, b"again") as peer:
        for number in (1, 2):
            peer.send(Kind.WORK_EXCEPTION, peer.grab().handle, b"attempt %d" % number)
            peer.take()
            assert geartrain("retry", handle).code == 0
        job = geartrain("show", handle, "--json").json
        assert (job["state"], job["attempts"]) == ("queued", 0)
        assert [trial["why"] for trial in job["trials"]] == ["attempt 1", "attempt 2"]
        peer.send(Kind.WORK_COMPLETE, peer.grab().handle, b"").take()
    job = geartrain("show", handle, "--json").json
    assert (job["state"], job["attempts"], len(job["trials"])) == ("done", 1, 2)


def test_a_long_reason_is_cut_with_a_mark(server: serving.ServerProcess, geartrain: Geartrain) -> None:
    reasons = ("x" * 1000, "x" * 1001, "\N{EURO SIGN}" * 1001)
    handles = submitted(geartrain, "wordy", *"abc")
    with worker(server.port, b"wordy") as peer:
        for reason in reasons:
            peer.send(Kind.WORK_EXCEPTION, peer.grab().handle, reason.encode())
        peer.take()
    kept = [geartrain("show", handle, "--json").json["reason"] for handle in handles]
    assert kept == ["x" * 1000, "x" * 998 + " …", "\N{EURO SIGN}" * 998 + " …"]


def test_more_jobs_than_one_call_takes(geartrain: Geartrain) -> None:
    submitted(geartrain, "many", *map(str, range(10_001)))
    assert geartrain("cancel", "--function", "many").text == "10,001 jobs cancelled\n"
