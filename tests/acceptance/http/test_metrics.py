"""Metrics, parsed by Prometheus' own library; the board and the rules in deploy/ use only existing metrics."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.acceptance.http.conftest import HTTP
from tests.support import serving
from tests.support.http_peer import Peer
from tests.support.metrics import SUFFIXES, documented, scrape, value
from tests.support.peer import until

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
COUNTED = ("cancelled", "expired", "retried", "completed", "failed", "submitted")
NAME = re.compile(r"\b(?:geartrain|gearman|process)_[a-z_]+\b")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[serving.ServerProcess]:
    """One with a disk, since that is measured too."""
    store = f"sqlite://{tmp_path_factory.mktemp('store')}/jobs.db"
    with serving.serve("--store", store, "--listen", HTTP) as running:
        yield running


@pytest.fixture(scope="module")
def peer(server: serving.ServerProcess) -> Peer:
    return Peer(server.url)


def used(peer: Peer, function: str) -> None:
    """Run one job of the function."""
    peer.submit(function)
    worker = peer.worker(function)
    worker.complete(worker.claim()["handle"])


def test_metrics_of_a_function(peer: Peer, function: str) -> None:
    for _ in range(3):
        peer.submit(function)
    peer.submit(function, delay=100)
    worker = peer.worker(function)
    worker.complete(worker.claim()["handle"])
    worker.report(worker.claim()["handle"], "fail", {})
    found = scrape(peer)
    states = ("queued", "running", "scheduled", "dead")
    assert [value(found, "geartrain_jobs", function=function, state=state) for state in states] == [1, 0, 1, 0]
    assert value(found, "geartrain_jobs_submitted_total", function=function) == 4
    assert value(found, "geartrain_jobs_completed_total", function=function) == 1
    assert value(found, "geartrain_jobs_failed_total", function=function) == 1
    assert value(found, "geartrain_function_workers", function=function) == 1
    assert value(found, "geartrain_oldest_job_age_seconds", function=function) > 0


def test_cancelled_expired_and_retried_jobs_of_a_function(peer: Peer, function: str) -> None:
    peer.call("POST", f"/jobs/{peer.submit(function)['handle']}/cancel")
    expired = peer.submit(function, expires=0.05)["handle"]
    until(lambda: peer.get(f"/jobs/{expired}")["state"] == "expired", "the job expires")
    peer.submit(function)
    first = peer.worker(function)
    handle = first.claim()["handle"]
    first.leave()
    second = peer.worker(function)
    assert second.claim()["handle"] == handle
    second.complete(handle)
    found = scrape(peer)
    counts = {what: value(found, f"geartrain_jobs_{what}_total", function=function) for what in COUNTED}
    assert counts == {"cancelled": 1, "expired": 1, "retried": 1, "completed": 1, "failed": 0, "submitted": 3}


def test_histograms_of_a_function(peer: Peer, function: str) -> None:
    used(peer, function)
    found = scrape(peer)
    for name in ("geartrain_function_wait_seconds", "geartrain_function_run_seconds"):
        assert value(found, f"{name}_count", function=function) == 1
        assert value(found, f"{name}_bucket", function=function, le="+Inf") == 1
        assert value(found, f"{name}_sum", function=function) > 0


@pytest.mark.peer("promtool")
def test_promtool_finds_nothing(peer: Peer, function: str) -> None:
    used(peer, function)
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=peer.ask("GET", "/metrics").data, capture_output=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.peer("promtool")
def test_promtool_accepts_the_rules() -> None:
    command = ["promtool", "check", "rules", str(DEPLOY / "prometheus-alerts.yml")]
    assert subprocess.run(command, capture_output=True, timeout=60).returncode == 0


def test_metrics_of_gearman_exporter(peer: Peer, function: str) -> None:
    peer.submit(function)
    peer.submit(function)
    peer.worker(function).claim()
    found = scrape(peer)
    assert value(found, "gearman_up") == 1
    assert value(found, "gearman_version_info") == 1
    names = ("gearman_jobs", "gearman_jobs_running", "gearman_jobs_waiting", "gearman_workers")
    assert [value(found, name, function=function) for name in names] == [2, 1, 1, 1]


def test_histograms_of_wait_and_run_times(peer: Peer, function: str) -> None:
    before = scrape(peer)
    peer.submit(function)
    worker = peer.worker(function)
    worker.complete(worker.claim()["handle"])
    after = scrape(peer)
    for name in ("geartrain_job_wait_seconds", "geartrain_job_run_seconds"):
        assert value(after, f"{name}_count") == value(before, f"{name}_count") + 1
        assert value(after, f"{name}_sum") > value(before, f"{name}_sum")
        bounds = [float(sample.labels["le"]) for sample in after[f"{name}_bucket"]]
        assert bounds == sorted(bounds)
        assert value(after, f"{name}_bucket", le="+Inf") == value(after, f"{name}_count")


@pytest.mark.parametrize("name", ['say "hi"', "back\\slash", "ünï", "<b>"])
def test_names_that_need_escapes(peer: Peer, name: str) -> None:
    peer.submit(name)
    assert value(scrape(peer), "gearman_jobs", function=name) == 1


def test_names_with_the_same_label_make_one_series(peer: Peer) -> None:
    peer.post("/jobs", {"function": {"base64": "/w=="}})
    peer.submit("\\xff")
    peer.submit("_other")
    scrape(peer)


@pytest.fixture(scope="module")
def bounded() -> Iterator[Peer]:
    """A server that gives only two functions series of their own."""
    with serving.serve("--store", "memory", "--listen", HTTP, "--metrics-functions", "2") as server:
        yield Peer(server.url)


def test_series_are_bounded_and_sums_are_complete(bounded: Peer) -> None:
    for number in range(6):
        for _ in range(number + 1):
            bounded.submit(f"f{number}")
    found = scrape(bounded)
    assert {sample.labels["function"] for sample in found["gearman_jobs"]} == {"f5", "f4", "_other"}
    assert value(found, "gearman_jobs", function="_other") == 1 + 2 + 3 + 4
    ages = [value(found, "geartrain_oldest_job_age_seconds", function=name) for name in ("_other", "f4")]
    assert ages[0] > ages[1]


def test_histograms_are_bounded_and_complete(bounded: Peer) -> None:
    before = sum(sample.value for sample in scrape(bounded).get("geartrain_function_run_seconds_count", []))
    for number in range(4):
        used(bounded, f"g{number}")
    samples = scrape(bounded)["geartrain_function_run_seconds_count"]
    assert len(samples) <= 3
    assert sum(sample.value for sample in samples) == before + 4


def queries() -> Iterator[tuple[str, str]]:
    board = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    yield from ((f"panel {title}", query) for title, query in _panels(board["panels"]))
    rules = yaml.safe_load((DEPLOY / "prometheus-alerts.yml").read_text())
    for group in rules["groups"]:
        for rule in group["rules"]:
            yield f"rule {rule['alert']}", rule["expr"]


def _panels(panels: list[Any]) -> Iterator[tuple[str, str]]:
    for panel in panels:
        yield from _panels(panel.get("panels", []))
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]


@pytest.mark.parametrize(("where", "query"), list(queries()), ids=lambda value: value[:40])
def test_the_grafana_board_and_the_rules_use_existing_metrics(
    peer: Peer, function: str, where: str, query: str
) -> None:
    used(peer, function)
    named = {SUFFIXES.sub("", name) for name in NAME.findall(query)}
    assert named, where
    # Those of a cluster are compared with a cluster in tests/acceptance/cluster/test_cluster_metrics.py.
    assert named <= {SUFFIXES.sub("", name) for name in scrape(peer)} | set(documented("A cluster"))


def test_alerts_have_a_severity_and_a_summary() -> None:
    rules = yaml.safe_load((DEPLOY / "prometheus-alerts.yml").read_text())
    for group in rules["groups"]:
        for rule in group["rules"]:
            assert rule["labels"]["severity"] in ("warning", "critical")
            assert {"summary", "description"} <= rule["annotations"].keys()


def test_the_page_lists_exactly_the_metrics(peer: Peer, function: str) -> None:
    used(peer, function)
    found = {SUFFIXES.sub("", name) for name in scrape(peer)}
    rows = documented()
    assert len(rows) == len(set(rows))
    assert set(rows) - set(documented("A cluster")) == found
