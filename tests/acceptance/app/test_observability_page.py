"""docs/observability.md: its programs work as they are written, with the real SDKs and a real server."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import process, serving

PAGE = Path(__file__).parents[3] / "docs" / "observability.md"
URL = "gearman://127.0.0.1:4730"
PROGRAM = re.compile(r"^```python file=(\S+)\n(.*?)^```", re.DOTALL | re.MULTILINE)

# Runs the worker of the page's program until no job is left, and prints what Sentry would have been sent.
COLLECT = """
import asyncio, json, sys
import sentry_sdk
from sentry_sdk.transport import Transport
import reported_shop

events = []

class Collect(Transport):
    def capture_envelope(self, envelope):
        event = envelope.get_event()
        if event is not None:
            events.append(event)

sentry_sdk.init("http://key@127.0.0.1:1/1", transport=Collect)
if sys.argv[2:] == ["requested"]:
    reported_shop.app.around_runs.clear()
    reported_shop.app.add_middleware(reported_shop.ReportErrors(requested_retries=True))
handle = reported_shop.charge.submit_sync(sys.argv[1])
reported_shop.app.run(burst=True)
print(json.dumps({"handle": handle.handle, "id": handle.id, "events": events}, default=str))
"""


@pytest.fixture
def folder(tmp_path: Path, server: serving.ServerProcess) -> Path:
    """The page's programs, for the server of this test."""
    for name, text in PROGRAM.findall(PAGE.read_text()):
        (tmp_path / name).write_text(text.replace(URL, server.url))
    return tmp_path


def exported(text: str) -> list[dict[str, Any]]:
    """The objects that the console exporters printed, one after the other, among other lines."""
    found, decoder, start = [], json.JSONDecoder(), text.find("{")
    while start >= 0:
        value, end = decoder.raw_decode(text, start)
        found.append(value)
        start = text.find("{", end)
    return found


def spans(objects: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in objects if "context" in each}


def test_submission_and_run_in_two_processes_are_one_trace(folder: Path) -> None:
    worker = process.Process([str(serving.installed_command()), "work", "traced_shop:app", "--processes", "2"], folder)
    try:
        program = [sys.executable, "traced_shop.py"]
        client = subprocess.run(program, cwd=folder, capture_output=True, text=True, timeout=60, check=True)
        assert client.stdout.startswith("Hello, Ada\n")
        worker.process.terminate()
        assert worker.wait() == 0
    finally:
        worker.kill()
    here, there = spans(exported(client.stdout)), spans(exported("\n".join(worker.lines)))
    assert here.keys() == {"order", "submit shop.greet"}
    assert there.keys() == {"run shop.greet", "write"}
    order, submitted, ran, inside = here["order"], here["submit shop.greet"], there["run shop.greet"], there["write"]
    assert len({span["context"]["trace_id"] for span in (order, submitted, ran, inside)}) == 1
    parents = [span["parent_id"] for span in (order, submitted, ran, inside)]
    assert parents == [None, *(span["context"]["span_id"] for span in (order, submitted, ran))]
    metrics = {metric for each in exported("\n".join(worker.lines)) for metric in metric_names(each)}
    assert {"messaging.process.duration", "geartrain.task.attempts", "geartrain.task.running"} <= metrics


def test_log_of_a_task(folder: Path) -> None:
    session = re.search(r"^```console\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert session is not None
    work, submit, *output = session[1].splitlines()
    assert (work, submit) == ("$ geartrain work logged_shop:app &", "$ python logged_shop.py")
    worker = process.Process([str(serving.installed_command()), "work", "logged_shop:app"], folder)
    try:
        program = [sys.executable, "logged_shop.py"]
        answer = subprocess.run(program, cwd=folder, capture_output=True, text=True, timeout=60, check=True)
        worker.process.terminate()
        assert worker.wait() == 0
    finally:
        worker.kill()
    assert without_times(answer.stdout.splitlines()) == without_times(output)


def without_times(lines: list[str]) -> list[str]:
    return [re.sub(r"^\d{4}-\d\d-\d\dT[\d:.]{12}Z", "", line) for line in lines]


def metric_names(exported: dict[str, Any]) -> list[str]:
    return [
        metric["name"]
        for resource in exported.get("resource_metrics", ())
        for scope in resource["scope_metrics"]
        for metric in scope["metrics"]
    ]


def collect(folder: Path, *arguments: str) -> dict[str, Any]:
    """What the page's middleware sends to Sentry for one call."""
    (folder / "collect.py").write_text(COLLECT)
    run = subprocess.run(
        [sys.executable, "collect.py", *arguments],
        cwd=folder, env=process.clean_environment(folder), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    answer: dict[str, Any] = json.loads(run.stdout)
    return answer


def test_errors_arrive_in_sentry_with_task_id_and_attempt(folder: Path) -> None:
    collected = collect(folder, "unknown")
    assert [event["exception"]["values"][-1]["value"] for event in collected["events"]] == ["no account unknown"] * 2
    for attempt, event in enumerate(collected["events"], start=1):
        expected = {"name": "shop.charge", "id": collected["id"], "job": collected["handle"], "attempt": attempt}
        assert {name: event["contexts"]["task"][name] for name in expected} == expected
        assert event["tags"] == {"task": "shop.charge", "attempt": attempt}
        assert event["transaction"] == "shop.charge"


def test_retry_that_is_requested_is_not_reported_unless_wanted(folder: Path) -> None:
    [event] = collect(folder, "busy")["events"]  # of the last attempt: none is left then
    assert event["tags"]["attempt"] == 2
    assert [event["tags"]["attempt"] for event in collect(folder, "busy", "requested")["events"]] == [1, 2]
