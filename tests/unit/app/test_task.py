"""Tasks, schedules and the calls that they submit."""

import asyncio
import datetime
import json
from typing import Any

import pytest

from geartrain.app import App, Backoff, PickleCodec, Proceed, TaskHandle
from geartrain.app.call import Call
from geartrain.app.task import CoroutineTask, PlainTask
from geartrain.model import Priority
from geartrain.testing import InMemory


def test_task_can_be_called_as_its_function(app: App) -> None:
    @app.task
    def double(number: int) -> int:
        """Twice as much."""
        return 2 * number

    @app.task(retries=3)
    async def triple(number: int) -> int:
        return 3 * number

    assert double(4) == 8
    assert asyncio.run(triple(4)) == 12
    assert (double.__name__, double.__doc__, double.name) == ("double", "Twice as much.", "shop.double")
    assert isinstance(double, PlainTask)
    assert isinstance(triple, CoroutineTask)


def test_explicit_name(app: App) -> None:
    @app.task(name="reverse")
    def backwards(text: str) -> str:
        return text[::-1]

    assert backwards.function_name == b"reverse"
    assert app.tasks == {"reverse": backwards}


def test_two_tasks_with_the_same_name(app: App) -> None:
    app.task(name="reverse")(lambda text: text)
    with pytest.raises(ValueError, match="already has a task 'reverse'"):
        app.task(name="reverse")(lambda text: text)


@pytest.mark.parametrize("name", ["", "my shop"])
def test_invalid_app_name(name: str) -> None:
    with pytest.raises(ValueError, match="must be a word"):
        App(name)


def test_server_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEARTRAIN_SERVER", "gearman://a,gearman://b")
    assert App("shop").urls == ("gearman://a", "gearman://b")
    monkeypatch.delenv("GEARTRAIN_SERVER")
    assert App("shop").urls == ("gearman://127.0.0.1:4730",)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"retries": -1}, "must not be negative"),
        ({"timeout": -1}, "must not be negative"),
        ({"priority": "urgent"}, "high, normal or low"),
        ({"codec": "pickle"}, "PickleCodec"),
    ],
)
def test_invalid_options(app: App, wrong: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        app.task(**wrong)


def test_call_of_a_submission(app: App) -> None:
    @app.task(priority="high", unique="user-{user_id}", retries=2, backoff=Backoff(base=7), timeout=60)
    def greet(user_id: int, greeting: str = "Hello") -> None: ...

    call = greet.bind(7, greeting="Hi")
    assert (call.priority, call.unique, call.background, call.run_at) == (Priority.HIGH, b"user-7", True, 0)
    assert json.loads(call.payload()) == {"v": 1, "args": [7], "kwargs": {"greeting": "Hi"}, "id": call.id}
    assert (greet.retry_policy.retries, greet.retry_policy.backoff.base, greet.timeout) == (2, 7, 60)


def test_options_of_one_submission_do_not_change_the_task(app: App) -> None:
    @app.task
    def greet(name: str) -> None: ...

    app.now = lambda: 1000.0
    later = greet.with_options(priority="low", unique=b"key", delay=5)
    at = greet.with_options(at=datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC))
    assert (later.bind("Ada").priority, later.bind("Ada").unique, later.bind("Ada").run_at) == (2, b"key", 1005)
    assert at.bind("Ada").run_at == 1767225600
    assert greet.with_options(at=12).bind("Ada").run_at == 12
    assert (greet.bind("Ada").priority, greet.bind("Ada").unique, greet.bind("Ada").run_at) == (1, b"", 0)


def test_same_arguments_have_the_same_key(app: App) -> None:
    @app.task(unique=True)
    def greet(name: str, greeting: str = "Hello") -> None: ...

    key = greet.bind("Ada").unique
    assert key == greet.bind("Ada", greeting="Hello").unique
    assert key != greet.bind("Bob").unique
    assert len(key) <= 64


def test_key_from_a_function(app: App) -> None:
    @app.task(unique=lambda name: name.lower())
    def greet(name: str) -> None: ...

    assert greet.bind("ADA").unique == b"ada"


def test_wrong_call_is_a_type_error_before_submission(app: App) -> None:
    @app.task
    def greet(name: str) -> None: ...

    with pytest.raises(TypeError, match="missing a required argument"):
        greet.bind()  # type: ignore[call-arg]


def test_pickle_codec(app: App) -> None:
    @app.task(codec=PickleCodec())
    def show(value: object) -> object:
        return value

    async def scenario() -> object:
        async with InMemory(app):
            return await show.call({1, 2})

    assert asyncio.run(scenario()) == {1, 2}


def test_submit_middleware_order_and_changes(app: App) -> None:
    seen: list[str] = []

    @app.around_submit
    async def outer(call: Call[Any], proceed: Proceed) -> Any:
        seen.append("outer")
        call.meta["trace"] = "t-1"
        handle = await proceed()
        seen.append(f"submitted {handle.handle}")
        return handle

    @app.around_submit
    async def inner(call: Call[Any], proceed: Proceed) -> Any:
        seen.append(f"inner {call.task.name} {call.args} {call.meta}")
        call.priority = Priority.LOW
        return await proceed()

    @app.task
    def greet(name: str) -> str:
        return name

    async def scenario() -> None:
        async with InMemory(app) as memory:
            assert isinstance(await greet.submit("Ada"), TaskHandle)
            await app.submit_many([greet.bind("Bob")])
            assert memory.assert_submitted(greet, "Ada").submission.priority == Priority.LOW
            assert memory.assert_submitted(greet, "Bob").submission.meta == {"trace": "t-1"}

    asyncio.run(scenario())
    assert seen[:3] == ["outer", "inner shop.greet ('Ada',) {'trace': 't-1'}", "submitted memory:1"]


def test_schedules(app: App) -> None:
    @app.cron("*/5 * * * *", timezone="Europe/Berlin")
    def tidy() -> None: ...

    @app.cron("0 9 * * 1", name="weekly", args=("Ada",), priority="high", unique=False)
    @app.task(retries=1)
    async def greet(name: str) -> None: ...

    assert tidy.name == "shop.tidy"
    assert list(app.schedules) == ["shop/tidy", "shop/weekly"]
    arguments = app.schedules["shop/weekly"].arguments()
    assert json.loads(arguments.pop("payload")) == {"v": 1, "args": ["Ada"], "id": "shop/weekly"}
    assert arguments == {
        "name": "shop/weekly", "expression": "0 9 * * 1", "function": "shop.greet", "priority": "high",
        "unique": False, "timezone": "UTC",
    }  # fmt: skip


def test_policy_for_missed_runs(app: App) -> None:
    @app.cron("@every 15s", missed="all")
    def tidy() -> None: ...

    assert app.schedules["shop/tidy"].arguments()["missed"] == "all"
    with pytest.raises(ValueError, match="missed must be one of skip, once, all"):
        app.cron("@hourly", missed="twice")  # type: ignore[arg-type]


@pytest.mark.parametrize("expression", ["", "* * * *", "* * * * * * *", "61 * * * *", "yesterday", "@every"])
def test_invalid_cron_expression(app: App, expression: str) -> None:
    with pytest.raises(ValueError, match="is not a cron expression"):
        app.cron(expression)


def test_unknown_time_zone(app: App) -> None:
    with pytest.raises(ValueError, match="no time zone 'Mars/Olympus'"):
        app.cron("* * * * *", timezone="Mars/Olympus")


def test_two_schedules_with_the_same_name(app: App) -> None:
    tidy = app.task(name="tidy")(lambda: None)
    app.cron("1 * * * *", name="tidy")(tidy)
    with pytest.raises(ValueError, match="already has a schedule 'shop/tidy'"):
        app.cron("2 * * * *", name="tidy")(tidy)


def test_schedule_of_a_function_that_needs_arguments(app: App) -> None:
    with pytest.raises(TypeError, match="missing a required argument"):

        @app.cron("* * * * *")
        def greet(name: str) -> None: ...
