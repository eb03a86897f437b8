"""Workflows of an app: the block that builds one, and the usual shapes, each of which is a few lines with it.

    numbers = await app.group([double.bind(number) for number in range(10)])           # list[int]
    text = await app.chain(fetch.bind(url), parse.bind, summarize.bind)                # what summarize returns
    total = await app.chord([count.bind(page) for page in pages], add.bind)            # what add returns
    print(await total.result(timeout=60))

What follows in a chain, and the callback of a chord, is a function that makes a call from a result: `task.bind`,
`functools.partial(task.bind, limit=3)` or a lambda. So the type checker compares results with parameters, in a chain up
to the fifth call.
"""

from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar, overload

from geartrain.app.call import Call
from geartrain.app.middleware import Around
from geartrain.app.transport import Transport
from geartrain.app.workflow import Workflow
from geartrain.app.workflow_handle import OutputHandle, SyncOutputHandle, SyncWorkflowHandle, WorkflowHandle
from geartrain.client.loop_thread import LoopThread

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
R = TypeVar("R")


class AppWorkflows:
    """The part of an app that submits workflows."""

    around_submits: list[Around[Call[Any]]]

    def transport(self) -> Transport:
        """The transport of the running event loop."""
        raise NotImplementedError

    def background(self) -> LoopThread:
        """The background loop that all sync calls share."""
        raise NotImplementedError

    def wait(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine on the background loop that all sync calls share."""
        return self.background().call(coroutine)

    def workflow(self, name: str) -> Workflow:
        """Build a workflow: `async with app.workflow("import") as flow`, or `with`; see `Workflow`."""
        return Workflow(self, name)

    def workflow_handle(self, id: str, server: str = "") -> WorkflowHandle:
        """A workflow that was submitted earlier, perhaps by another program, by the `handle` of its WorkflowHandle.

        With several servers `server` is the URL of the one that has it; the default is the first.
        """
        return WorkflowHandle(self.transport().workflow(id.encode("utf-8", "surrogateescape"), server), "", None)

    def workflow_handle_sync(self, id: str, server: str = "") -> SyncWorkflowHandle:
        """Like `workflow_handle`, for programs without an event loop."""

        async def find() -> WorkflowHandle:
            return self.workflow_handle(id, server)

        return SyncWorkflowHandle(self.wait(find()), self.background())

    async def group(self, calls: Iterable[Call[R]], *, name: str = "group") -> OutputHandle[list[R]]:
        """Submit calls that have nothing to do with each other, all or none; the result is the list of theirs."""
        flow = self.workflow(name)
        nodes = [flow.add(call) for call in calls]
        return OutputHandle(await flow.submit(), nodes)

    async def chord(
        self, calls: Iterable[Call[A]], callback: Callable[[list[A]], Call[R]], *, name: str = "chord"
    ) -> OutputHandle[R]:
        """Submit calls, and one that gets the list of their results: `app.chord([...], merge.bind)`."""
        flow = self.workflow(name)
        output = flow.add(callback([flow.add(call) for call in calls]))
        return OutputHandle(await flow.submit(), output)

    @overload
    async def chain(self, first: Call[A], second: Callable[[A], Call[B]], /, *, name: str = ...) -> OutputHandle[B]: ...

    @overload
    async def chain(
        self, first: Call[A], second: Callable[[A], Call[B]], third: Callable[[B], Call[C]], /, *, name: str = ...
    ) -> OutputHandle[C]: ...

    @overload
    async def chain(
        self,
        first: Call[A],
        second: Callable[[A], Call[B]],
        third: Callable[[B], Call[C]],
        fourth: Callable[[C], Call[D]],
        /,
        *,
        name: str = ...,
    ) -> OutputHandle[D]: ...

    @overload
    async def chain(
        self,
        first: Call[A],
        second: Callable[[A], Call[B]],
        third: Callable[[B], Call[C]],
        fourth: Callable[[C], Call[D]],
        fifth: Callable[[D], Call[Any]],
        /,
        *others: Callable[[Any], Call[Any]],
        name: str = ...,
    ) -> OutputHandle[Any]: ...

    async def chain(
        self, first: Call[Any], /, *others: Callable[[Any], Call[Any]], name: str = "chain"
    ) -> OutputHandle[Any]:
        """Submit calls of which each gets the result of the one before: `app.chain(fetch.bind(url), parse.bind)`."""
        flow = self.workflow(name)
        output = flow.add(first)
        for following in others:
            output = flow.add(following(output))
        return OutputHandle(await flow.submit(), output)

    def group_sync(self, calls: Iterable[Call[R]], *, name: str = "group") -> SyncOutputHandle[list[R]]:
        """Like `group`, for programs without an event loop."""
        return self._sync(self.group(calls, name=name))

    def chord_sync(
        self, calls: Iterable[Call[A]], callback: Callable[[list[A]], Call[R]], *, name: str = "chord"
    ) -> SyncOutputHandle[R]:
        """Like `chord`, for programs without an event loop."""
        return self._sync(self.chord(calls, callback, name=name))

    @overload
    def chain_sync(
        self, first: Call[A], second: Callable[[A], Call[B]], /, *, name: str = ...
    ) -> SyncOutputHandle[B]: ...

    @overload
    def chain_sync(
        self, first: Call[A], second: Callable[[A], Call[B]], third: Callable[[B], Call[C]], /, *, name: str = ...
    ) -> SyncOutputHandle[C]: ...

    @overload
    def chain_sync(
        self,
        first: Call[A],
        second: Callable[[A], Call[B]],
        third: Callable[[B], Call[C]],
        fourth: Callable[[C], Call[D]],
        /,
        *,
        name: str = ...,
    ) -> SyncOutputHandle[D]: ...

    @overload
    def chain_sync(
        self,
        first: Call[A],
        second: Callable[[A], Call[B]],
        third: Callable[[B], Call[C]],
        fourth: Callable[[C], Call[D]],
        fifth: Callable[[D], Call[Any]],
        /,
        *others: Callable[[Any], Call[Any]],
        name: str = ...,
    ) -> SyncOutputHandle[Any]: ...

    def chain_sync(
        self, first: Call[Any], /, *others: Callable[[Any], Call[Any]], name: str = "chain"
    ) -> SyncOutputHandle[Any]:
        """Like `chain`, for programs without an event loop."""
        return self._sync(self.chain(first, *others, name=name))

    def _sync(self, submission: Coroutine[Any, Any, OutputHandle[R]]) -> SyncOutputHandle[R]:
        return SyncOutputHandle(self.wait(submission), self.background())
