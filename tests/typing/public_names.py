"""Every name that `import geartrain` offers has a type: none is Any, and none is missing."""

from typing import assert_type

import geartrain
from geartrain import (
    App,
    AsyncClient,
    AsyncWorker,
    Backoff,
    Client,
    GiveUp,
    Job,
    JobFailedError,
    Retry,
    Running,
    Worker,
    current_task,
)

assert_type(geartrain.__version__, str)
assert_type(App("shop"), App)
assert_type(geartrain.App("shop"), App)
assert_type(Backoff(base=1.0).after(1), float)
assert_type(current_task(), Running)
assert_type(Retry("later").after, float | None)
assert_type(GiveUp("never"), GiveUp)
assert_type(JobFailedError("it failed").reason, str)


def clients(job: Job) -> None:
    with Client("gearman://127.0.0.1:4730") as client:
        assert_type(client, Client)
        assert_type(client.run("reverse", b"abc"), bytes)
    assert_type(AsyncClient(), AsyncClient)
    assert_type(Worker(), Worker)
    assert_type(AsyncWorker(), AsyncWorker)
    assert_type(job.payload, bytes)


def what_is_missing() -> None:
    assert geartrain.app_name  # refused: attr-defined reportAttributeAccessIssue reportUnknownMemberType
