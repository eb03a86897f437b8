"""An app: a named group of tasks with their servers, schedules and middleware.

    app = App("shop", "gearman://127.0.0.1:4730")

    @app.task(retries=3)
    async def greet(name: str) -> str:
        return f"Hello, {name}"

    handle = await greet.submit("Ada")       # submit a durable job
    text = await greet.call("Ada")           # let a worker run it, and wait for the result
    text = await greet("Ada")                # run it directly

An app knows no protocol: a transport submits its calls, and each event loop that uses the app has its own transport.
"""

import asyncio
import os
import ssl
import time
import types
import weakref
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, ParamSpec, Self, TypeVar, Unpack, overload

from geartrain import eventloop
from geartrain.app import codecs, decorators, middleware, schedules, task_log
from geartrain.app.app_workflows import AppWorkflows
from geartrain.app.call import Call
from geartrain.app.codecs import Codec
from geartrain.app.context import Running
from geartrain.app.dependencies import Depends as Depends
from geartrain.app.dependencies import Provider, provided_type
from geartrain.app.handle import SyncTaskHandle, TaskHandle
from geartrain.app.lifespan import Hook, Lifespan
from geartrain.app.middleware import Around, Middleware
from geartrain.app.schedules import MissedPolicy, TaskSchedule
from geartrain.app.task import CoroutineTask, PlainTask, PriorityName, Task, parse_priority
from geartrain.app.transport import SubmittedJob, Transport
from geartrain.app.unique_key import PartitionRule, UniqueRule
from geartrain.app.worker_options import WorkerKeywords, WorkerOptions
from geartrain.client.arguments import Duration
from geartrain.client.loop_thread import LoopThread

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A", bound=Around[Any])
H = TypeVar("H", bound=Hook)
D = TypeVar("D", bound=Provider)

VARIABLE: Final = "GEARTRAIN_SERVER"  # the command line tool uses it too
DEFAULT_URL: Final = "gearman://127.0.0.1:4730"


class App(AppWorkflows):
    """A group of tasks. The names of its functions and schedules on the server begin with `name`.

    >>> from geartrain.testing import InMemory
    >>> app = App("shop", "gearman://127.0.0.1:4730")
    >>> @app.task(retries=3)
    ... def greet(name: str) -> str:
    ...     return f"Hello, {name}"
    >>> greet.name
    'shop.greet'
    >>> with app, InMemory(app) as memory:  # no server
    ...     handle = greet.submit_sync("Ada")
    ...     ran = memory.drain_sync()
    ...     handle.result()
    'Hello, Ada'
    """

    def __init__(
        self,
        name: str,
        *urls: str,
        codec: str | Codec = codecs.JSON,
        tls: ssl.SSLContext | None = None,
        token: str | None = None,
        lifespan: Lifespan | None = None,
        keep_logs: task_log.Level = None,
        cluster: bool = False,
    ) -> None:
        """`tls` is for a URL like gearmans:// if the default context (see `geartrain.client.tls`) does not fit.

        `token` is for a server with users if it is not in the environment (see `geartrain.client.credentials`).
        `lifespan` makes an async context manager that each worker process enters before its first task and leaves
        after its last one. `keep_logs` is a level, such as "INFO": what the tasks log from that level on is kept with
        their jobs. By default nothing is, since it may contain secrets. With `cluster`, the URLs are of servers of one
        cluster: another one is asked for a result whose server cannot be reached.
        """
        if not name or any(letter.isspace() for letter in name):
            raise ValueError(f"the name of an app must be a word without spaces, not {name!r}")
        self.name = name
        self.urls = urls or tuple(os.environ.get(VARIABLE, DEFAULT_URL).split(","))
        self.tls = tls
        self.token = token
        self.cluster = cluster
        self.codec = codecs.find_codec(codec)
        self.log_level = task_log.parse_level(keep_logs)
        self.tasks: dict[str, Task[Any, Any]] = {}
        self.schedules: dict[str, TaskSchedule] = {}
        self.around_submits: list[Around[Call[Any]]] = []
        self.around_runs: list[Around[Running]] = []
        self.lifespan = lifespan
        self.startup_hooks: list[Hook] = []
        self.shutdown_hooks: list[Hook] = []
        self.state = types.SimpleNamespace()  # for what the startup makes and the tasks use
        self.providers: dict[type, Provider] = {}  # of dependencies, by the type that they make
        self.dependency_overrides: dict[Provider, Provider] = {}  # for tests
        self.now: Callable[[], float] = time.time
        self.connect: Callable[[], Transport] = self._to_servers  # testing.InMemory replaces it
        self._thread: LoopThread | None = None  # of the background event loop, for sync calls
        self._pid = 0  # of the process that started it
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
        priority: PriorityName = "normal",
        unique: UniqueRule = False,
        resubmit: bool = False,
        expires: Duration | None = None,
        keep_for: Duration | None = None,
        partition: PartitionRule = "",
        partition_from_unique: str | None = None,
        max_running: int | None = None,
        max_running_per_partition: int | None = None,
        rate: str | None = None,
        burst: int | None = None,
        rate_per_partition: str | None = None,
        burst_per_partition: int | None = None,
        max_share: float | None = None,
        codec: str | Codec | None = None,
        keep_logs: task_log.Level = None,
    ) -> decorators.TaskDecorator: ...

    def task(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Make a task of a function: `@app.task`, or `@app.task(retries=3, timeout=60)`.

        `retries` is the number of attempts after the first; `backoff` the delays between them, a Backoff or the
        seconds of the first delay. `timeout`, in seconds, is for one attempt. Calls with the same `unique` key are one
        job while it is unfinished: True uses the arguments as key, a text such as "user-{user_id}" contains some of
        them, a function makes the key from them. `resubmit` submits a call again if the connection breaks, even if it
        may be running already. `expires`, in seconds from the submission, is when nobody wants the result any more: a
        call that no worker got by then ends with an ExpiredError. `keep_for`, in seconds, is how long the server keeps
        the result of a submitted call at least. `keep_logs` is a level, or False, instead of the app's.

        Calls of different partitions take turns; a `partition` is made from the arguments like a unique key, or is the
        part of a unique key before the text `partition_from_unique`. At most `max_running` jobs of the task run at
        once, over all workers, and `max_running_per_partition` of each partition. `rate`, such as "100/m", is how often
        one starts, with a `burst` of so many at once; `rate_per_partition` and `burst_per_partition` are for each
        partition. What an operator has set counts instead. In a worker, its jobs take at most `max_share` of the slots.

        >>> app = App("shop")
        >>> @app.task(retries=3, timeout=60, unique="user-{user_id}")
        ... def welcome(user_id: int) -> None:
        ...     print("welcome", user_id)
        >>> welcome(7)
        welcome 7
        >>> welcome.bind(7).unique
        b'user-7'
        """
        decorator = decorators.TaskDecorator(self, **options)
        return decorator if function is None else decorator(function)

    def cron(
        self,
        expression: str,
        *,
        timezone: str = "UTC",
        name: str = "",
        unique: bool = True,
        missed: MissedPolicy = "once",
        priority: PriorityName = "normal",
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> decorators.ScheduleDecorator:
        """Let the server submit a task by a cron expression: `@app.cron("*/5 * * * *")`.

        The expression has five fields, or six with the seconds first; `@hourly` and the like stand for such fields, and
        `@every 15s` is an interval. With `unique`, a run is skipped while the previous one is unfinished. `missed` says
        what becomes of runs that were missed while the server was down: "skip", "once" (one run instead of them) or
        "all" (the last 100). A task with several schedules needs a `name` for each.

        >>> app = App("shop")
        >>> @app.cron("0 6 * * 1-5", timezone="Europe/Berlin")
        ... def open_shop() -> None: ...
        >>> list(app.schedules)
        ['shop/open_shop']
        """
        schedules.check(expression, timezone, missed)
        return decorators.ScheduleDecorator(
            self,
            expression=expression,
            timezone=timezone,
            name=name,
            unique=unique,
            missed=missed,
            priority=parse_priority(priority),
            args=args,
            kwargs=kwargs or {},
        )

    # Middleware

    def around_submit(self, around: A) -> A:
        """Call this around every submission; the first one that is added is the outermost."""
        self.around_submits.append(around)
        return around

    def around_run(self, around: A) -> A:
        """Call this around every run of a task in a worker; the first one that is added is the outermost."""
        self.around_runs.append(around)
        return around

    def add_middleware(self, added: Middleware) -> None:
        """Add an object with one or both kinds of middleware, such as `geartrain.otel.Tracing()`."""
        if type(added).around_submit is not Middleware.around_submit:
            self.around_submit(added.around_submit)
        if type(added).around_run is not Middleware.around_run:
            self.around_run(added.around_run)

    # Startup, shutdown and dependencies

    def on_startup(self, hook: H) -> H:
        """Call this function, plain or async, when a worker process starts, before its first task."""
        self.startup_hooks.append(hook)
        return hook

    def on_shutdown(self, hook: H) -> H:
        """Call this function, plain or async, when a worker process stops, after its last task."""
        self.shutdown_hooks.append(hook)
        return hook

    def provider(self, provider: D) -> D:
        """Use this function for dependencies of the type that its annotation says, where `Depends()` names no provider.

        >>> app = App("shop")
        >>> @app.provider
        ... def greeting() -> str:
        ...     return "Hello"
        >>> @app.task
        ... def greet(name: str, word: str = Depends()) -> str:
        ...     return f"{word}, {name}"
        >>> greet("Ada")
        'Hello, Ada'
        """
        self.providers[provided_type(provider)] = provider
        return provider

    # Submitting

    async def submit(self, call: Call[R]) -> TaskHandle[R]:
        """Submit a call made by `task.bind`."""
        if not self.around_submits:
            return _handle_of(call, await self.transport().submit(call))

        async def innermost() -> TaskHandle[R]:
            return _handle_of(call, await self.transport().submit(call))

        handle: TaskHandle[R] = await middleware.chain(self.around_submits, call, innermost)()
        return handle

    async def submit_many(self, calls: Iterable[Call[R]]) -> list[TaskHandle[R]]:
        """Submit many calls without waiting for each; returns when the server has all of them on disk.

        `calls` are made by `task.bind`: `await app.submit_many(greet.bind(name) for name in names)`.
        """
        if self.around_submits:
            return await asyncio.gather(*map(self.submit, calls))
        submitted: list[Call[R]] = []

        def remember() -> Iterator[Call[R]]:
            for call in calls:
                submitted.append(call)
                yield call

        jobs = await self.transport().submit_many(remember())
        return [_handle_of(call, job) for call, job in zip(submitted, jobs, strict=True)]

    def submit_many_sync(self, calls: Iterable[Call[R]]) -> list[SyncTaskHandle[R]]:
        """Like `submit_many`, for programs without an event loop."""
        return [SyncTaskHandle(handle, self.background()) for handle in self.wait(self.submit_many(calls))]

    def handle(self, id: str, server: str = "") -> TaskHandle[Any]:
        """A call that was submitted earlier, perhaps by another program, by the `handle` of its TaskHandle.

        `task.handle` knows the type of the result and the name of the function, which Periodic and GearMonkey need.
        With several servers `server` is the URL of the one that has the job; the default is the first.
        """
        job = self.transport().job(id.encode("utf-8", "surrogateescape"), b"", server)
        return TaskHandle(job, "", self.codec.decoder(Any))

    def handle_sync(self, id: str, server: str = "") -> SyncTaskHandle[Any]:
        """Like `handle`, for programs without an event loop."""

        async def find() -> TaskHandle[Any]:
            return self.handle(id, server)

        return self.sync_handle(find())

    def transport(self) -> Transport:
        """The transport of the running event loop."""
        loop = asyncio.get_running_loop()
        transport = self.transports.get(loop)
        if transport is None:
            transport = self.transports[loop] = self.connect()
        return transport

    def _to_servers(self) -> Transport:
        from geartrain.app.server_transport import ServerTransport

        return ServerTransport(self.urls, self.tls, self.token, self.cluster)

    # Programs without an event loop

    def sync_handle(self, submission: Coroutine[Any, Any, TaskHandle[R]]) -> SyncTaskHandle[R]:
        """Wait for a submission, and make a sync handle of its handle."""
        return SyncTaskHandle(self.wait(submission), self.background())

    def background(self) -> LoopThread:
        """The background loop of this process; a child process after a fork gets its own."""
        if self._thread is None or self._pid != os.getpid():
            self._thread, self._pid = LoopThread(), os.getpid()
        return self._thread

    # Working

    async def serve(self, *urls: str, **options: Unpack[WorkerKeywords]) -> None:
        """Run this app's tasks on the running event loop until SIGTERM, SIGINT or cancellation.

        `urls` replace the app's own, also for calls that its tasks submit. `concurrency` tasks run at a time (10), and
        those of one task take at most `max_share` of these slots, unless it has its own. `only` and `exclude` are
        names or patterns of tasks. With `burst` it ends when no job is left. Running tasks have `stop_timeout` seconds
        after a stop, by default as long as they take. `name` is for lists of workers.
        """
        from geartrain.app.worker import AppWorker

        self.urls = urls or self.urls
        await AppWorker(self, WorkerOptions(**options)).serve()

    def run(self, *urls: str, **options: Unpack[WorkerKeywords]) -> None:
        """Like `serve`, with an event loop of its own: for a whole program."""
        with asyncio.Runner(loop_factory=eventloop.best().factory) as runner:
            runner.run(self.serve(*urls, **options))

    # Closing

    async def close(self) -> None:
        """Close the connections of the running event loop."""
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


def _handle_of(call: Call[R], job: SubmittedJob) -> TaskHandle[R]:
    return TaskHandle(job, call.task.name, call.task.read_result, call)
