"""An app: tasks under one name, where their jobs go, and what happens around them.

    app = App("shop", "gearman://127.0.0.1:4730")

    @app.task(retries=3)
    async def greet(name: str) -> str:
        return f"Hello, {name}"

    handle = await greet.submit("Ada")       # a durable job
    text = await greet.call("Ada")           # have a worker do it, and wait
    text = await greet("Ada")                # do it here

An app knows no protocol: a transport carries its calls, and each event loop that uses the app has one of its own.
"""

import asyncio
import os
import time
import weakref
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, ParamSpec, Self, TypeVar, overload

from geartrain import eventloop
from geartrain.app import codecs, crons, decorators, middleware
from geartrain.app.call import Call
from geartrain.app.codecs import Codec
from geartrain.app.context import Running
from geartrain.app.crons import Cron
from geartrain.app.handle import SyncTaskHandle, TaskHandle
from geartrain.app.middleware import Around
from geartrain.app.task import CoroutineTask, PlainTask, PriorityWord, Task, priority_of
from geartrain.app.transport import Transport
from geartrain.app.unique_key import UniqueRule
from geartrain.client.loop_thread import LoopThread

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A", bound=Around[Any])

VARIABLE: Final = "GEARTRAIN_SERVER"  # as the command has it
DEFAULT_URL: Final = "gearman://127.0.0.1:4730"


class App:
    """Tasks that belong together. `name` begins the names of its functions and schedules on the server."""

    def __init__(self, name: str, *urls: str, codec: str | Codec = codecs.JSON) -> None:
        if not name or any(letter.isspace() for letter in name):
            raise ValueError(f"an app's name is a word, not {name!r}")
        self.name = name
        self.urls = urls or tuple(os.environ.get(VARIABLE, DEFAULT_URL).split(","))
        self.codec = codecs.codec_of(codec)
        self.tasks: dict[str, Task[Any, Any]] = {}
        self.crons: dict[str, Cron] = {}
        self.around_submits: list[Around[Call[Any]]] = []
        self.around_runs: list[Around[Running]] = []
        self.now: Callable[[], float] = time.time
        self.connect: Callable[[], Transport] = self._to_servers  # tests put memory here
        self._thread: LoopThread | None = None  # for programs without an event loop, since their first call
        self._pid = 0  # of the process that it lives in
        self.transports: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Transport] = weakref.WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"<App {self.name} {' '.join(self.urls)}>"

    # Tasks and schedules

    @overload
    def task(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> CoroutineTask[P, R]: ...  # type: ignore[overload-overlap]

    @overload
    def task(self, function: Callable[P, R], /) -> PlainTask[P, R]: ...

    @overload
    def task(
        self,
        /,
        *,
        name: str = "",
        retries: int = 0,
        backoff: decorators.AnyBackoff = decorators.BACKOFF,
        retry_on: decorators.Exceptions = (Exception,),
        give_up_on: decorators.Exceptions = (),
        timeout: float = 0.0,
        priority: PriorityWord = "normal",
        unique: UniqueRule = False,
        resubmit: bool = False,
        codec: str | Codec | None = None,
    ) -> decorators.TaskMaker: ...

    def task(self, function: Callable[..., Any] | None = None, /, **wishes: Any) -> Any:
        """Make a function a task: `@app.task`, or `@app.task(retries=3, timeout=60)`.

        `retries` are attempts after the first, `backoff` the waits between them: a Backoff, or the seconds of the
        first. `timeout` is for one attempt. `unique` makes two calls one job while it waits or runs: True for the
        same arguments, a text such as "user-{user_id}", or a function of the arguments that gives the key. `resubmit`
        allows that a call is submitted again when the connection breaks, though it may be running already.
        """
        maker = decorators.TaskMaker(self, **wishes)
        return maker if function is None else maker(function)

    def cron(
        self,
        expression: str,
        *,
        timezone: str = "UTC",
        name: str = "",
        unique: bool = True,
        priority: PriorityWord = "normal",
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> decorators.CronMaker:
        """Have a task submitted by the server whenever the five fields say so: `@app.cron("*/5 * * * *")`.

        `unique`: a run is left out while the one before it is not over. A task with several schedules needs a
        `name` for each.
        """
        crons.check(expression, timezone)
        return decorators.CronMaker(self, expression, timezone, name, unique, priority_of(priority), args, kwargs or {})

    # Middleware

    def around_submit(self, around: A) -> A:
        """Have this called around every submission; the first is the outermost."""
        self.around_submits.append(around)
        return around

    def around_run(self, around: A) -> A:
        """Have this called around every run of a task in a worker; the first is the outermost."""
        self.around_runs.append(around)
        return around

    # Submitting

    async def submit(self, call: Call[R]) -> TaskHandle[R]:
        """Submit a call that `task.bind` made."""
        if not self.around_submits:
            return TaskHandle(call, await self.transport().submit(call))

        async def innermost() -> TaskHandle[R]:
            return TaskHandle(call, await self.transport().submit(call))

        handle: TaskHandle[R] = await middleware.chained(self.around_submits, call, innermost)()
        return handle

    async def submit_many(self, calls: Iterable[Call[R]]) -> list[TaskHandle[R]]:
        """Submit many calls without waiting for each; returns when the server has them all on disk."""
        if self.around_submits:
            return await asyncio.gather(*map(self.submit, calls))
        gathered: list[Call[R]] = []

        def taken() -> Iterator[Call[R]]:
            for call in calls:
                gathered.append(call)
                yield call

        remotes = await self.transport().submit_many(taken())
        return [TaskHandle(call, remote) for call, remote in zip(gathered, remotes, strict=True)]

    def submit_many_sync(self, calls: Iterable[Call[R]]) -> list[SyncTaskHandle[R]]:
        """The same for programs without an event loop."""
        return [SyncTaskHandle(handle, self._background()) for handle in self.wait(self.submit_many(calls))]

    def transport(self) -> Transport:
        """Who carries calls from this event loop."""
        loop = asyncio.get_running_loop()
        transport = self.transports.get(loop)
        if transport is None:
            transport = self.transports[loop] = self.connect()
        return transport

    def _to_servers(self) -> Transport:
        from geartrain.app.server_transport import ServerTransport

        return ServerTransport(self.urls)

    # Programs without an event loop

    def wait(self, work: Coroutine[Any, Any, R]) -> R:
        """Run this to its end on the background loop that all sync calls share."""
        return self._background().call(work)

    def sync_handle(self, submission: Coroutine[Any, Any, TaskHandle[R]]) -> SyncTaskHandle[R]:
        """The handle of a submission, once it is through."""
        return SyncTaskHandle(self.wait(submission), self._background())

    def _background(self) -> LoopThread:
        """The loop of this process: one that was made before a fork stays behind."""
        if self._thread is None or self._pid != os.getpid():
            self._thread, self._pid = LoopThread(), os.getpid()
        return self._thread

    # Working

    async def serve(self, *urls: str, concurrency: int = 10, name: str = "") -> None:
        """Run this app's tasks, on the running loop, until SIGTERM, SIGINT or cancellation.

        `urls` are used instead of the app's own, for what its tasks submit as well.
        """
        from geartrain.app.worker import AppWorker

        self.urls = urls or self.urls
        await AppWorker(self, concurrency=concurrency, name=name).serve()

    def run(self, *urls: str, concurrency: int = 10, name: str = "") -> None:
        """The same as a whole program, with a loop of its own."""
        with asyncio.Runner(loop_factory=eventloop.best().factory) as runner:
            runner.run(self.serve(*urls, concurrency=concurrency, name=name))

    # Leaving

    async def close(self) -> None:
        """Hang up what was opened from this event loop."""
        transport = self.transports.pop(asyncio.get_running_loop(), None)
        if transport is not None:
            await transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.end(self.close())
