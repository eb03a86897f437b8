"""aio-periodic 1.0.0, 0.2.8 and 0.2.4, each in its own environment, as clients and as workers of our server.

They poll: 0.2 asks for work once a second, 1.0 takes a second to register. What is waited for here is what they
say they have seen.
"""

import contextlib
import itertools
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import process, serving

VERSIONS = ("1.0.0", "0.2.8", "0.2.4")
HERE = Path(__file__).parent / "periodic"
ENVIRONMENTS = Path(sys.prefix) / "peers"
PATIENCE = 30.0  # for a library to come back after its connection was lost

every_version = pytest.mark.parametrize(
    "version", [pytest.param(version, marks=pytest.mark.peer(f"aio-periodic-{version}")) for version in VERSIONS]
)
_serial = itertools.count(1)

Event = dict[str, Any]


class Script(process.Process):
    """A running script of periodic/, in the words of its speech.py."""

    def __init__(self, version: str, script: str, home: Path, *arguments: str) -> None:
        python = ENVIRONMENTS / f"aio-periodic-{version}" / "bin" / "python"
        super().__init__([str(python), str(HERE / script), *arguments], home, stdin=True)
        try:
            self.wait_for(ready=True)
        except AssertionError:
            self.kill()
            raise

    @property
    def events(self) -> list[Event]:
        return [json.loads(line) for line in self.lines]

    def order(self, **order: Any) -> None:
        self.write(json.dumps(order).encode() + b"\n")

    def wait_for(self, count: int = 1, **wanted: Any) -> Event:
        """The event that has these values, once it was told so often."""

        def matches(lines: list[str]) -> list[Event]:
            events = [json.loads(line) for line in lines]
            return [event for event in events if wanted.items() <= event.items()]

        self.wait_until(lambda lines: len(matches(lines)) >= count, f"{wanted} {count} time(s)")
        return matches(self.lines)[count - 1]


class Client(Script):
    def begin(self, act: str, function: str, name: str = "", **more: Any) -> int:
        """Give an order without waiting for what comes of it."""
        number = next(_serial)
        self.order(do=act, function=function, name=name, number=number, **more)
        return number

    def result(self, number: int) -> Any:
        event = self.wait_for(number=number)
        assert "error" not in event, event
        return event["result"]

    def ask(self, act: str, function: str, name: str = "", **more: Any) -> Any:
        return self.result(self.begin(act, function, name, **more))

    def ask_until(self, expected: Any, act: str, function: str, name: str = "", **more: Any) -> None:
        """Again and again, since a library that has lost its connection may answer with an error."""
        deadline = time.monotonic() + PATIENCE
        while True:
            event = self.wait_for(number=self.begin(act, function, name, **more))
            if event.get("result") == expected:
                return
            assert time.monotonic() < deadline, event

    def wait_until_done(self, function: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while self.ask("status", function)["job_count"]:
            assert time.monotonic() < deadline, "its jobs are not done"


class Worker(Script):
    def __init__(self, version: str, home: Path, entrypoint: str, prefix: str) -> None:
        super().__init__(version, "worker.py", home, entrypoint, prefix)
        self.prefix = prefix

    def ran(self, function: str, name: str, count: int = 1) -> Event:
        """A job of this function, once it was run so often."""
        return self.wait_for(count, ran=f"{self.prefix}-{function}", name=name)

    def let_pass(self, name: str) -> None:
        self.order(**{"pass": name})


@pytest.fixture(scope="module")
def stack() -> Iterator[contextlib.ExitStack]:
    """Ends whatever was started, whatever became of the tests."""
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture(scope="module")
def home(stack: contextlib.ExitStack) -> Callable[[], Path]:
    """Makes a folder for one process."""
    return lambda: Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="geartrain-peer-")))


@pytest.fixture(scope="module")
def entrypoints(home: Callable[[], Path], stack: contextlib.ExitStack) -> dict[str, str]:
    """One server for all the tests: its TCP port and its socket file, as aio-periodic names them."""
    path = home() / "periodic.sock"
    listen = ("--listen", "periodic://127.0.0.1:0", "--listen", f"periodic+unix://{path}")
    server = stack.enter_context(serving.serve("--store", "memory", *listen))
    return {"tcp": f"tcp://127.0.0.1:{server.port}", "unix": f"unix://{path}"}


@pytest.fixture(scope="module")
def entrypoint(entrypoints: dict[str, str]) -> str:
    return entrypoints["tcp"]


@pytest.fixture(scope="module")
def dial(home: Callable[[], Path], entrypoint: str, stack: contextlib.ExitStack) -> Callable[[str], Client]:
    """A client of a version, the same for every test."""
    clients: dict[str, Client] = {}

    def dial(version: str) -> Client:
        if version not in clients:
            clients[version] = Client(version, "client.py", home(), entrypoint)
            stack.callback(clients[version].kill)
        return clients[version]

    return dial


@pytest.fixture(scope="module")
def hire(home: Callable[[], Path], entrypoint: str, stack: contextlib.ExitStack) -> Callable[[str], Worker]:
    """A worker of a version, the same for every test. Its prefix is its version."""
    workers: dict[str, Worker] = {}

    def hire(version: str) -> Worker:
        if version not in workers:
            workers[version] = Worker(version, home(), entrypoint, version)
            stack.callback(workers[version].kill)
        return workers[version]

    return hire


@pytest.fixture
def name() -> str:
    """A job's name that no other test uses."""
    return f"name-{next(_serial)}"


@pytest.fixture
def client(dial: Callable[[str], Client], version: str) -> Client:
    return dial(version)


@pytest.fixture
def worker(hire: Callable[[str], Worker], version: str) -> Worker:
    return hire(version)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(one, other, marks=pytest.mark.peer(f"aio-periodic-{one}", f"aio-periodic-{other}"))
        for one in VERSIONS
        for other in VERSIONS
    ],
)
def test_a_client_and_a_worker(
    dial: Callable[[str], Client], hire: Callable[[str], Worker], one: str, other: str, name: str
) -> None:
    client, worker = dial(one), hire(other)
    assert client.ask("submit", f"{other}-echo", name, workload="payload", count=3) is True
    event = worker.ran("echo", name)
    assert (event["workload"], event["count"]) == ("payload", 3)
    assert client.ask("run", f"{other}-echo", name + "-again", workload="hello") == "R:hello"


@every_version
class TestClient:
    def test_ping(self, client: Client) -> None:
        assert client.ask("ping", "") is True

    def test_status(self, client: Client, version: str, name: str) -> None:
        function = f"{version}-status"
        client.ask("submit", function, name, run_at=4_000_000_000)
        row = client.ask("status", function)
        assert (row["worker_count"], row["job_count"], row["processing"]) == (0, 1, 0)
        if version == "1.0.0":  # 0.2 knows one column less, and takes LOCKED for the time
            assert (row["locked"], row["sched_at"]) == (0, 4_000_000_000)

    def test_replace(self, client: Client, hire: Callable[[str], Worker], version: str, name: str) -> None:
        client.ask("submit", f"{version}-replace", name, workload="ONE", run_at=4_000_000_000)
        client.ask("submit", f"{version}-replace", name, workload="TWO", run_at=4_000_000_000)
        assert client.ask("status", f"{version}-replace")["job_count"] == 1

    def test_remove(self, client: Client, version: str, name: str) -> None:
        function = f"{version}-remove"
        client.ask("submit", function, name, run_at=4_000_000_000)
        assert client.ask("remove", function, name) is True
        assert client.ask("remove", function, name) is True
        assert client.ask("status", function)["job_count"] == 0

    def test_drop(self, client: Client, version: str, name: str) -> None:
        function = f"{version}-drop"
        client.ask("submit", function, name, run_at=4_000_000_000)
        assert client.ask("drop", function) is True
        assert client.ask("status", function) is None

    def test_nobody_offers_it(self, client: Client, version: str, name: str) -> None:
        event = client.wait_for(number=client.begin("run", f"{version}-nobody", name))
        assert "no worker" in event["error"]

    def test_large_results(self, client: Client, worker: Worker, version: str, name: str) -> None:
        """What 0.2.4 can read: it takes what one call to read gives for all there is."""
        size = 30_000 if version == "0.2.4" else 1_000_000
        workload = "x" * size
        assert client.ask("run", f"{version}-echo", name, workload=workload) == f"R:{workload}"


@every_version
class TestWorker:
    def test_scheduled(self, client: Client, worker: Worker, version: str, name: str) -> None:
        run_at = int(time.time()) + 1
        client.ask("submit", f"{version}-echo", name, run_at=run_at)
        worker.ran("echo", name)
        assert time.time() >= run_at - 0.001

    def test_later(self, client: Client, worker: Worker, version: str, name: str) -> None:
        client.ask("submit", f"{version}-twice_later", name)
        assert [worker.ran("twice_later", name, time)["count"] for time in (1, 2, 3)] == [0, 1, 2]
        client.wait_until_done(f"{version}-twice_later")

    def test_failed_and_tried_again(self, client: Client, worker: Worker, version: str, name: str) -> None:
        client.ask("submit", f"{version}-fail_once", name)
        worker.ran("fail_once", name, 2)
        client.wait_until_done(f"{version}-fail_once")

    def test_several_at_once(self, client: Client, worker: Worker, version: str, name: str) -> None:
        names = [f"{name}-{number}" for number in range(3)]
        waits = [client.begin("run", f"{version}-gate", each, timeout=60) for each in names]
        for each in names:
            worker.ran("gate", each)
        for each in reversed(names):
            worker.let_pass(each)
        assert [client.result(wait) for wait in waits] == ["passed"] * 3

    def test_lock(self, client: Client, worker: Worker, version: str, name: str) -> None:
        names = [f"{name}-{number}" for number in range(3)]
        for each in names:
            client.ask("submit", f"{version}-lock", each)
        for before in range(3):
            worker.wait_until(
                lambda lines, n=before: len(_names(lines, "inside", names)) > n, "another one has the lock"
            )
            worker.let_pass(_names(worker.lines, "inside", names)[-1])
        client.wait_until_done(f"{version}-lock")
        worker.wait_until(lambda lines: len(_names(lines, "outside", names)) == len(names), "the last one has left it")
        story = [event for event in worker.events if {event.get("inside"), event.get("outside")} & set(names)]
        assert [next(iter(event)) for event in story] == ["inside", "outside"] * 3
        assert sorted(_names(worker.lines, "inside", names)) == names

    def test_a_worker_that_is_killed(
        self, client: Client, version: str, name: str, home: Callable[[], Path], entrypoint: str
    ) -> None:
        """Its job goes to another one at once."""
        prefix = f"{version}-killed"
        with contextlib.ExitStack() as own:
            workers = []
            for _ in range(2):
                worker = Worker(version, home(), entrypoint, prefix)
                own.callback(worker.kill)
                workers.append(worker)
                if len(workers) == 1:
                    client.ask("submit", f"{prefix}-gate", name)
                    worker.ran("gate", name)
            workers[0].kill()
            workers[1].ran("gate", name)
            workers[1].let_pass(name)
            client.wait_until_done(f"{prefix}-gate")

    def test_over_a_socket_file(
        self, version: str, name: str, home: Callable[[], Path], entrypoints: dict[str, str]
    ) -> None:
        with contextlib.ExitStack() as own:
            worker = Worker(version, home(), entrypoints["unix"], f"{version}-unix")
            own.callback(worker.kill)
            client = Client(version, "client.py", home(), entrypoints["unix"])
            own.callback(client.kill)
            assert client.ask("run", f"{version}-unix-echo", name, workload="hello") == "R:hello"


def _names(lines: list[str], event: str, names: list[str]) -> list[str]:
    """Those of these names to which this has happened, in that order."""
    happened = [json.loads(line).get(event) for line in lines]
    return [name for name in happened if name in names]


@pytest.mark.peer(*(f"aio-periodic-{version}" for version in VERSIONS))
def test_broadcast_reaches_every_version(
    dial: Callable[[str], Client], hire: Callable[[str], Worker], name: str
) -> None:
    """A job goes to those who wait at that moment, and nobody says when all of them do: so there are several."""
    client, workers = dial("1.0.0"), [hire(version) for version in VERSIONS]
    deadline = time.monotonic() + PATIENCE
    for turn in itertools.count(1):
        for version in VERSIONS:  # whoever has just run a job has asked for more with its other slots
            client.ask("run", f"{version}-echo", f"{name}-echo-{turn}", timeout=60)
        client.ask("submit", "everywhere", f"{name}-{turn}")
        seen = [{event["name"] for event in worker.events if event.get("ran") == "everywhere"} for worker in workers]
        if set.intersection(*seen):
            break
        assert time.monotonic() < deadline, seen


@pytest.mark.peer("aio-periodic-1.0.0", "aio-periodic-0.2.1")
def test_the_worker_of_an_older_release(
    dial: Callable[[str], Client], hire: Callable[[str], Worker], name: str
) -> None:
    """0.2.1 takes any answer to its grab for a job."""
    client, worker = dial("1.0.0"), hire("0.2.1")
    for number in range(6):
        assert client.ask("run", "0.2.1-echo", f"{name}-{number}", workload="hello", timeout=60) == "R:hello"
    client.ask("submit", "0.2.1-twice_later", name)
    assert [worker.ran("twice_later", name, time)["count"] for time in (1, 2, 3)] == [0, 1, 2]
    client.wait_until_done("0.2.1-twice_later")


@pytest.mark.peer("aio-periodic-1.0.0")
def test_streaming(dial: Callable[[str], Client], hire: Callable[[str], Worker], name: str) -> None:
    """Each step is seen by the client before the next: what this client has not read when more comes, it drops."""
    client, worker = dial("1.0.0"), hire("1.0.0")
    number = client.begin("stream", "1.0.0-parts", name, timeout=60)
    worker.ran("parts", name)
    for part in ("one", "two"):
        assert client.ask("ping", "") is True
        worker.let_pass(name)
        client.wait_for(part=part)
    assert client.ask("ping", "") is True
    worker.let_pass(name)
    assert client.result(number) == "whole"
    assert [event["part"] for event in client.events if "part" in event] == ["one", "two"]


@pytest.mark.parametrize(
    "version",
    [pytest.param(version, marks=pytest.mark.peer(f"aio-periodic-{version}")) for version in ("1.0.0", "0.2.8")],
)
def test_after_the_server_was_killed_and_started_again(version: str, home: Callable[[], Path], tmp_path: Path) -> None:
    """On the same port and store. 0.2.4 does not come back by itself: its program has to make a new one."""
    store = ("--store", f"sqlite://{tmp_path}/jobs.db", "--listen")
    with contextlib.ExitStack() as own:
        server = own.enter_context(serving.serve(*store, "periodic://127.0.0.1:0"))
        entrypoint = f"tcp://{server.address}"
        worker = Worker(version, home(), entrypoint, "back")
        own.callback(worker.kill)
        client = Client(version, "client.py", home(), entrypoint)
        own.callback(client.kill)
        assert client.ask("run", "back-echo", "before", workload="1") == "R:1"
        assert client.ask("submit", "back-echo", "across", run_at=int(time.time()) + 2) is True
        server.kill()
        own.enter_context(serving.serve(*store, f"periodic://{server.address}"))
        worker.ran("echo", "across")
        client.ask_until("R:2", "run", "back-echo", "after", workload="2")
        assert [event for event in worker.events if event.get("name") == "across"] == [worker.ran("echo", "across")]
