"""Workflows: nodes, their results, and the usual shapes."""

import functools
from collections.abc import Mapping, Sequence
from typing import assert_type

from geartrain import (
    App,
    AsyncClient,
    AsyncJob,
    AsyncWorkflow,
    Client,
    JobFailedError,
    Node,
    OutputHandle,
    SyncOutputHandle,
    SyncWorkflow,
    SyncWorkflowHandle,
    TaskHandle,
    Workflow,
    WorkflowHandle,
    WorkflowJob,
)

app = App("shop")


@app.task
async def fetch(url: str) -> bytes:
    return url.encode()


@app.task
def merge(parts: list[bytes], *, separator: bytes = b"") -> str:
    return separator.join(parts).decode()


@app.task
async def count(text: str, limit: int = 0) -> int:
    return min(len(text), limit)


@app.task
async def double(number: int) -> int:
    return 2 * number


@app.task
async def report(parts: Sequence[bytes | JobFailedError]) -> None: ...


async def in_a_loop(urls: list[str]) -> None:
    async with app.workflow("import") as flow:
        assert_type(flow, Workflow)
        parts = [flow.add(fetch.bind(url)) for url in urls]
        assert_type(parts, list[Node[bytes]])
        separator = flow.add(fetch.bind("separator"))
        merged = flow.add(merge.options(priority="low", keep_for=60).bind(parts, separator=separator))
        assert_type(merged, Node[str])
        flow.add(count.bind(merged, limit=flow.add(double.bind(2))))
        flow.add(report.bind(parts), after=[merged, separator], on_failure="run")
    assert_type(flow.handle, WorkflowHandle)
    assert_type(await flow.handle.result(merged, timeout=60), str)
    assert_type(await flow.handle.result(parts), list[bytes])
    assert_type(flow.handle.member(merged), TaskHandle[str])
    assert_type(await flow.handle.wait(5.0), str)
    assert_type(await flow.handle.state(), str)
    assert_type(await flow.handle.reason(), str)
    assert_type(await flow.handle.progress(), Mapping[str, int])
    assert_type(await flow.handle.cancel(), bool)
    assert_type(await flow.handle.retry(), bool)
    assert_type(app.workflow_handle(flow.handle.handle, flow.handle.server), WorkflowHandle)


async def shapes(urls: list[str]) -> None:
    fetches = [fetch.bind(url) for url in urls]
    group = await app.group(fetches)
    assert_type(group, OutputHandle[list[bytes]])
    assert_type(await group.result(timeout=5), list[bytes])
    assert_type(group.workflow, WorkflowHandle)
    assert_type(await app.chord(fetches, merge.bind), OutputHandle[str])
    assert_type(await app.chord(fetches, lambda parts: merge.bind(parts, separator=b",")), OutputHandle[str])
    assert_type(await app.chain(fetch.bind("a"), lambda part: merge.bind([part])), OutputHandle[str])
    assert_type(await app.chain(double.bind(1), double.bind, double.bind, name="eight"), OutputHandle[int])
    limited = functools.partial(count.bind, limit=3)
    assert_type(await app.chain(merge.bind([]), limited, double.bind, double.bind), OutputHandle[int])


def without_a_loop(urls: list[str]) -> None:
    with app.workflow("import") as flow:
        part = flow.add(fetch.bind(urls[0]))
    assert_type(flow.handle_sync, SyncWorkflowHandle)
    assert_type(flow.handle_sync.result(part), bytes)
    assert_type(app.group_sync([fetch.bind(url) for url in urls]), SyncOutputHandle[list[bytes]])
    assert_type(app.chord_sync([fetch.bind(url) for url in urls], merge.bind).result(), str)
    assert_type(app.chain_sync(merge.bind([]), count.bind).result(timeout=1), int)
    assert_type(app.workflow_handle_sync("H:lap:1"), SyncWorkflowHandle)


async def what_is_refused(flow: Workflow) -> None:
    part = flow.add(fetch.bind("a"))
    flow.add(count.bind(part))  # refused: arg-type reportArgumentType
    flow.add(merge.bind([flow.add(double.bind(1))]))  # refused: list-item reportArgumentType
    flow.add(merge.bind(part))  # refused: arg-type reportArgumentType
    flow.add(fetch)  # refused: arg-type reportArgumentType
    flow.add(fetch.bind("a"), on_failure="panic")  # refused: arg-type reportArgumentType
    text: str = await flow.handle.result(part)  # refused: arg-type reportAssignmentType
    await app.chain(fetch.bind("a"), double.bind)  # refused: arg-type reportArgumentType
    await app.chord([fetch.bind("a")], double.bind)  # refused: arg-type reportArgumentType
    print(text)


async def of_the_client(client: AsyncClient, other: Client) -> None:
    jobs = [WorkflowJob("fetch", b"a", priority="low", delay=5), WorkflowJob("merge", after=[0], on_failure="run")]
    workflow = await client.submit_workflow("import", jobs)
    assert_type(workflow, AsyncWorkflow)
    assert_type(workflow.job, AsyncJob)
    assert_type(workflow.jobs, Sequence[AsyncJob])
    assert_type(await workflow.wait(timeout=5), str)
    assert_type((await workflow.progress()).states, Mapping[str, int])
    assert_type(await workflow.retry(), bool)
    assert_type(await workflow.jobs[0].retry(), bool)
    assert_type(other.submit_workflow("import", jobs), SyncWorkflow)
    assert_type(other.workflow("H:lap:1").wait(), str)
    await client.submit_workflow("import", ["fetch"])  # refused: list-item reportArgumentType
