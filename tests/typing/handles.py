"""Handles: results have the type that the task's function returns."""

from typing import Any, assert_type

from geartrain import App, SyncTaskHandle, TaskHandle
from geartrain.client.job_events import Completed, Data, Failed, Progressed, Warned
from geartrain.client.order import Status

app = App("shop")


@app.task
async def count(words: list[str]) -> dict[str, int]:
    return {word: words.count(word) for word in words}


async def in_a_loop(stored: str) -> None:
    handle = count.handle(stored, "gearman://127.0.0.1:4730")
    assert_type(handle, TaskHandle[dict[str, int]])
    assert_type(await handle.result(), dict[str, int])
    assert_type(await handle.state(), str)
    assert_type(await handle.progress(), tuple[float, float] | None)
    assert_type(await handle.traceback(), str)
    assert_type(await handle.logs(), list[str])
    assert_type(await handle.status(), Status)
    assert_type(await handle.cancel(), bool)
    assert_type(handle.id + handle.handle + handle.server + handle.name, str)
    async for event in handle.events():
        assert_type(event, Progressed | Data | Warned | Completed | Failed)
    assert_type(app.handle(stored), TaskHandle[Any])


def without_a_loop(stored: str) -> None:
    handle = count.handle_sync(stored)
    assert_type(handle, SyncTaskHandle[dict[str, int]])
    assert_type(handle.result(timeout=1), dict[str, int])
    assert_type(handle.state(), str)
    assert_type(handle.progress(), tuple[float, float] | None)
    assert_type(handle.traceback(), str)
    assert_type(handle.logs(), list[str])
    assert_type(handle.status(), Status)
    assert_type(handle.cancel(), bool)
    for event in handle.events():
        assert_type(event, Progressed | Data | Warned | Completed | Failed)
    assert_type(app.handle_sync(stored), SyncTaskHandle[Any])


async def what_is_refused(handle: TaskHandle[dict[str, int]]) -> None:
    words: list[str] = await handle.result()  # refused: assignment reportAssignmentType
    other: TaskHandle[int] = handle  # refused: assignment reportAssignmentType
    await handle.result(timeout="5")  # refused: arg-type reportArgumentType
    count.handle(b"H:lap:1")  # refused: arg-type reportArgumentType
    handle.handle = "H:lap:2"  # refused: misc reportAttributeAccessIssue
    print(words, other)
