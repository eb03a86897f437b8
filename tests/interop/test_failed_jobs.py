"""A background job that a library's worker fails is kept whole; retried, the same worker gets it again."""

import json
from typing import Any

import pytest

from tests.interop.libraries import LIBRARIES, Library
from tests.interop.peer import Dial, Hire, Spawn
from tests.support import serving
from tests.support.gearman_peer import Kind, Peer
from tests.support.peer import until

pytestmark = pytest.mark.differs_from_gearmand
CONTROL = b"geartrain.control"
WAYS = [(library, way) for library in LIBRARIES for way in ("fail", "die") if way in library.offers]


def ask(client: Peer, verb: str, **arguments: Any) -> Any:
    handle = client.submit(CONTROL, b"", json.dumps({"do": verb, **arguments}).encode())
    answered, _, answer = client.body(Kind.WORK_COMPLETE).partition(b"\0")
    assert answered == handle
    return json.loads(answer)["answer"]


def fail_twice(client: Peer, function: str) -> None:
    """Submit a job to a worker that fails it, retry it, and look at what is kept each time."""
    handle = client.submit(function.encode(), b"the-key", b"go", kind=Kind.SUBMIT_JOB_BG).decode()
    for trials in range(3):
        until(lambda: ask(client, "job", handle=handle)["state"] == "failed", "the worker has failed the job")
        job = ask(client, "job", handle=handle)
        assert (job["payload"], job["unique"], job["door"]) == ("go", "the-key", "gearman")
        assert [trial["why"] for trial in job["trials"]] == [job["reason"]] * trials
        assert ask(client, "payload", handle=handle) == "go"
        if trials < 2:
            ask(client, "retry", handle=handle)
    assert ask(client, "bulk", action="delete", filter={"function": function}) == {
        "done": 1,
        "refused": 0,
        "more": False,
    }
    assert ask(client, "jobs", function=function)["items"] == []


@pytest.mark.parametrize(("library", "way"), WAYS, ids=lambda value: str(value))
def test_library(hire: Hire, dial: Dial, library: Library, way: str, function: str) -> None:
    hire(library, function)
    fail_twice(dial(), f"{function}-{way}")


@pytest.mark.peer("gearman")
def test_gearman_tool(spawn: Spawn, target: serving.ServerProcess, dial: Dial, function: str) -> None:
    """Its command fails: `false`."""
    spawn("gearman", "-h", serving.HOST, "-p", str(target.port), "-w", "-f", function, "false")
    fail_twice(dial(), function)
