"""The table of verbs: complete, plain data, and the only place where a verb is named."""

import asyncio
import inspect
import json

import pytest
import typer
from typer.testing import CliRunner

from geartrain.admin import verbs
from geartrain.admin.control import FUNCTION, ControlWorker
from geartrain.admin.jobs import ACTIONS
from geartrain.admin.service import Admin
from geartrain.admin.verbs import Argument, Button, CliCommand, Http, Verb
from geartrain.cli import job_verbs
from geartrain.doors.http import openapi, static_files, verb_routes
from geartrain.engine.engine import Engine
from geartrain.runtime.tick import TickLoop
from tests.unit.admin.conftest import FakeArchive, FakeServer
from tests.unit.engine.recording import RecordingWatcher

CALLED = [verb for verb in verbs.VERBS.values() if not verb.streams]

# The names that clients of the control function rely on.
NAMES = {
    "overview", "history", "system", "ping", "reload", "tail", "audit", "users", "dump", "load",
    "functions", "function", "function_history", "pause", "resume", "limit", "limit_running", "declare_limits",
    "configure", "drop",
    "jobs", "failures", "job", "find", "submit", "submit_workflow", "workflow", "results", "watch",
    "payload", "result", "log",
    "cancel", "retry", "delete", "hasten", "bulk", "postpone", "bury", "add_log",
    "workers",
    "nodes", "drain", "fence",
    "crons", "cron", "cron_set", "cron_remove", "cron_run", "cron_pause", "cron_resume",
}  # fmt: skip


def test_names_are_those_of_the_public_api() -> None:
    assert set(verbs.VERBS) == NAMES


@pytest.mark.parametrize("verb", CALLED, ids=lambda verb: verb.name)
def test_every_verb_is_a_method_with_the_same_arguments(verb: Verb) -> None:
    parameters = dict(inspect.signature(getattr(Admin, verb.name)).parameters)
    del parameters["self"]
    if verb.query:
        assert list(parameters) == ["query"]
        return
    arguments = [argument for argument in verb.arguments if argument != verbs.LOCAL]  # which `Admin.ask` takes
    assert set(parameters) == {argument.name for argument in arguments}
    for argument in arguments:
        has_default = parameters[argument.name].default is not inspect.Parameter.empty
        assert has_default or argument.required, argument.name


@pytest.mark.parametrize("verb", verbs.VERBS.values(), ids=lambda verb: verb.name)
def test_payloads_and_secrets_are_not_for_the_audit_log(verb: Verb) -> None:
    words = ("payload", "data", "result", "token", "secret", "password")
    private = {argument.name for argument in verb.arguments if any(word in argument.name for word in words)}
    assert {argument.name for argument in verb.arguments if argument.private} >= private


@pytest.mark.parametrize("verb", verbs.VERBS.values(), ids=lambda verb: verb.name)
def test_rows_are_consistent(verb: Verb) -> None:
    assert verb.help
    assert not verb.help.endswith(".")
    assert set(verb.scopes) <= {verbs.READ, verbs.SUBMIT, verbs.WORK, verbs.ADMIN}
    assert set(verb.states) <= set(verbs.STATES)
    assert bool(verb.action) == bool(verb.engine_method)
    if verb.http is not None:
        assert verb.changes == (verb.http.method != "GET")
        assert verb.http.path.count("{") <= 1
        assert verb.http.shows in ("", *verbs.VERBS)
    if verb.command is not None and not verb.command.report:
        assert verb.past
    if verb.button is not None:
        assert verb.past
        assert verb.http is not None


def test_bulk_actions_are_those_of_the_rows() -> None:
    assert set(ACTIONS) == {"cancel", "retry", "delete", "run"}
    assert verbs.VERBS["bulk"].arguments[0].choices == tuple(ACTIONS)


# A verb that exists only here: a row, and the method that does the work.
GREET = Verb(
    "greet", verbs.FUNCTION, "Greet a function",
    (Argument("function", verbs.BYTES, "Whom to greet", required=True), Argument("times", verbs.INTEGER, default=1)),
    (verbs.ADMIN,), changes=True, past="greeted",
    http=Http("POST", "/functions/{name}/greet"),
    command=CliCommand("greet", report="{answer}"),
    button=Button("Greet", question="Greet {name}?"),
)  # fmt: skip
TABLE = {**verbs.VERBS, "greet": GREET}


class GreetingAdmin(Admin):
    def greet(self, function: bytes, times: int = 1) -> list[str]:
        return [f"hello {function.decode()}"] * times


def test_a_new_row_is_a_control_verb(engine: Engine, server: FakeServer, archive: FakeArchive) -> None:
    async def answer() -> object:
        tick_loop = TickLoop(asyncio.get_running_loop(), engine, lambda: server.now)
        worker = ControlWorker(tick_loop, GreetingAdmin(tick_loop, server, archive, {}), TABLE)
        watcher = RecordingWatcher()
        completed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        watcher.react = lambda what, job: completed.set_result(None)
        engine.submit(FUNCTION, payload=b'{"do": "greet", "function": "f", "times": 2}', watcher=watcher)
        await completed
        await worker.close()
        tick_loop.close()
        ((what, result),) = watcher.words
        assert what == "complete"
        assert isinstance(result, bytes)
        return json.loads(result)

    assert asyncio.run(answer()) == {"answer": ["hello f", "hello f"]}


def test_a_new_row_is_a_route_and_is_described() -> None:
    routes = verb_routes.routes(TABLE, GreetingAdmin)
    (route,) = [route for route in routes if route.path == "/api/v1/functions/{name}/greet"]
    assert (route.method, route.scopes, route.status) == ("POST", {"admin"}, 200)
    operation = openapi.document(routes)["paths"][route.path]["post"]
    assert operation["summary"] == "Greet a function"
    schema = openapi.document(routes)["components"]["schemas"]["GreetRequest"]
    assert schema["properties"]["times"]["description"].endswith("Default: 1")
    assert operation["responses"]["200"]["content"]["application/json"]["schema"]["type"] == "array"


def test_a_new_row_is_a_command_with_help() -> None:
    app = typer.Typer()
    job_verbs.add(app, TABLE.values())
    text = CliRunner().invoke(app, ["--help"]).output
    assert "Greet a function." in text
    assert "Whom to greet." in CliRunner().invoke(app, ["greet", "--help"]).output


def test_a_new_row_is_a_button() -> None:
    module = static_files.verbs_module(tuple(TABLE.values())).decode()
    assert '"question": "Greet {name}?"' in module
    assert '"path": "functions/{name}/greet"' in module
