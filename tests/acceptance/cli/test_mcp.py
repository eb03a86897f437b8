"""`geartrain mcp`, with the official client over standard input and output, at a real server."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import mcp.types
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import ClientSession, MCPError, StdioServerParameters, stdio_client

from tests.acceptance.cli.conftest import run
from tests.support import process, serving
from tests.support.gearman_peer import Kind, Peer

READING = {
    "status", "functions", "function", "jobs", "job", "job_log", "failures", "workers", "schedules", "why_waiting",
}  # fmt: skip

T = TypeVar("T")


class Assistant:
    """The official client, with a session that the threads of a test can use."""

    def __init__(self, portal: BlockingPortal, session: ClientSession) -> None:
        self._portal = portal
        self.session = session

    def do(self, method: Callable[..., Awaitable[T]], *arguments: Any) -> T:
        """The answer to a request."""
        return self._portal.call(method, *arguments)

    def tools(self) -> dict[str, mcp.types.Tool]:
        return {tool.name: tool for tool in self.do(self.session.list_tools).tools}

    def call(self, tool: str, **arguments: Any) -> Any:
        """The answer of a tool, which is not an error."""
        result = self.do(self.session.call_tool, tool, arguments)
        assert not result.is_error, result.content
        assert json.loads(_text(result)) == result.structured_content
        return result.structured_content

    def refusal(self, tool: str, **arguments: Any) -> str:
        result = self.do(self.session.call_tool, tool, arguments)
        assert result.is_error, result.content
        return _text(result)


def _text(result: Any) -> str:
    [content] = result.content
    assert isinstance(content, mcp.types.TextContent)
    return content.text


@contextlib.asynccontextmanager
async def _session(url: str, words: Sequence[str]) -> AsyncIterator[ClientSession]:
    """A session with the command, which the client starts and ends."""
    parameters = StdioServerParameters(
        command=str(serving.installed_command()),
        args=["mcp", "--server", url, *words],
        env=process.clean_environment(Path("/nonexistent")),
    )
    with open(os.devnull, "w") as errors:
        async with stdio_client(parameters, errlog=errors) as streams, ClientSession(*streams) as opened:
            await opened.initialize()
            yield opened


@contextlib.contextmanager
def assistant_of(url: str, *words: str) -> Iterator[Assistant]:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(_session(url, words)) as session:
        yield Assistant(portal, session)


@pytest.fixture(scope="module")
def server() -> Iterator[serving.ServerProcess]:
    with serving.serve("--store", "memory", "--listen", "gearman://127.0.0.1:0") as running:
        yield running


@pytest.fixture(scope="module")
def assistant(server: serving.ServerProcess) -> Iterator[Assistant]:
    """One that can only read."""
    with assistant_of(server.url) as one:
        yield one


def hints(tool: mcp.types.Tool) -> tuple[bool | None, bool | None]:
    assert tool.annotations is not None
    return tool.annotations.read_only_hint, tool.annotations.destructive_hint


def test_only_reading_tools_are_offered(assistant: Assistant) -> None:
    offered = assistant.tools()
    assert set(offered) == READING
    assert {hints(tool) for tool in offered.values()} == {(True, False)}
    assert offered["job"].input_schema["required"] == ["handle"]
    assert "there is no tool 'retry', or it was not allowed" in assistant.refusal("retry", handle="H:1")


def test_allowed_verbs(server: serving.ServerProcess) -> None:
    with (
        assistant_of(server.url, "--allow", "retry", "--allow", "delete") as assistant,
        Peer(server.port) as client,
        Peer(server.port).register(b"fails") as worker,
    ):
        offered = assistant.tools()
        assert set(offered) == READING | {"retry", "delete"}
        assert (hints(offered["retry"]), hints(offered["delete"])) == ((False, False), (False, True))
        handle = client.submit(b"fails", b"", b"x", kind=Kind.SUBMIT_JOB_BG).decode()
        _settled(worker.send(Kind.WORK_FAIL, worker.grab().handle))
        assert assistant.call("job", handle=handle)["state"] == "failed"
        assistant.call("retry", handle=handle)
        assert worker.grab().handle == handle.encode()


def test_answers(server: serving.ServerProcess, assistant: Assistant) -> None:
    with Peer(server.port) as client:
        handle = client.submit(b"looked-at", b"", b"hello", kind=Kind.SUBMIT_JOB_BG).decode()
    assert assistant.call("status")["queued"] >= 1
    names = [item["name"] for item in assistant.call("functions", search="looked")["items"]]
    assert names == ["looked-at"]
    [job] = assistant.call("jobs", function="looked-at", state="queued")["items"]
    assert (job["handle"], job["payload"]) == (handle, "hello")
    with Peer(server.port).register(b"looked-for") as worker:
        _settled(worker.send(Kind.SET_CLIENT_ID, b"ada"))
        [found] = assistant.call("workers", search="looked-for")["items"]
    assert found["name"] == "ada"


def test_failures_are_grouped(server: serving.ServerProcess, assistant: Assistant) -> None:
    with Peer(server.port) as client, Peer(server.port).register(b"grouped") as worker:
        for number in range(3):
            client.submit(b"grouped", b"", b"%d" % number, kind=Kind.SUBMIT_JOB_BG)
            worker.send(Kind.WORK_EXCEPTION, worker.grab().handle, b"disk full")
        _settled(worker)
    [group] = assistant.call("failures", function="grouped")["groups"]
    assert (group["reason"], group["failed"]) == ("disk full", 3)


def test_why_a_job_waits(server: serving.ServerProcess, assistant: Assistant) -> None:
    """Without a worker, with a busy one, paused, scheduled, running, ended."""

    def why(handle: bytes) -> tuple[bool, str]:
        answer = assistant.call("why_waiting", handle=handle.decode())
        return answer["waits"], "; ".join(answer["reasons"])

    with Peer(server.port) as client:
        first = client.submit(b"slow", b"", b"", kind=Kind.SUBMIT_JOB_BG)
        assert why(first) == (True, "no connected worker runs its function: start one")
        with Peer(server.port).register(b"slow") as worker:
            job = worker.grab()
            waits, reason = why(first)
            assert (waits, "has been running it since" in reason) == (False, True)
            second = client.submit(b"slow", b"", b"", kind=Kind.SUBMIT_JOB_BG)
            assert "none of the 1 workers of its function is free; 1 jobs of it run, and 1 wait" in why(second)[1]
            run("", "limit", "slow", "--max-running", "1", "--server", server.url)
            assert "it is above a limit, and waits for one of 1 running jobs to end" in why(second)[1]
            run("", "limit", "slow", "--max-running", "0", "--server", server.url)
            run("", "pause", "slow", "--server", server.url)
            assert why(second)[1].startswith("its function is paused")
            _settled(worker.send(Kind.WORK_COMPLETE, job.handle, b""))
            assert why(first) == (False, "it does not wait: it has ended, and is done")
        client.send(Kind.SUBMIT_JOB_EPOCH, b"slow", b"", b"4000000000", b"")
        assert why(client.body(Kind.JOB_CREATED))[1].startswith("it is scheduled for 2096-10-02")


def test_resources(server: serving.ServerProcess, assistant: Assistant) -> None:
    with Peer(server.port) as client:
        handle = client.submit(b"resource", b"", b"", kind=Kind.SUBMIT_JOB_BG).decode()
    session = assistant.session
    listed = {str(resource.uri) for resource in assistant.do(session.list_resources).resources}
    assert listed == {f"geartrain://{name}" for name in ("failures", "functions", "status", "workers")}
    [template] = assistant.do(session.list_resource_templates).resource_templates
    assert template.uri_template == "geartrain://jobs/{handle}"
    for uri in (*listed, f"geartrain://jobs/{handle}"):
        [contents] = assistant.do(session.read_resource, uri).contents
        assert isinstance(contents, mcp.types.TextResourceContents)
        answer = json.loads(contents.text)
        assert "/jobs/" not in uri or answer["handle"] == handle
    with pytest.raises(MCPError, match="there is no resource geartrain://nothing"):
        assistant.do(session.read_resource, "geartrain://nothing")


def test_errors_are_readable(assistant: Assistant) -> None:
    assert "H:none:1" in assistant.refusal("job", handle="H:none:1")
    assert "the argument 'handle' is missing" in assistant.refusal("job")
    assert "unknown argument 'colour'" in assistant.refusal("jobs", colour="red")


def test_server_that_cannot_be_reached() -> None:
    """The command runs all the same: the server may come back."""
    with assistant_of("gearman://127.0.0.1:1") as assistant:
        assert "no server could be reached" in assistant.refusal("status")


def test_token_decides(tmp_path: Path) -> None:
    """A verb that is allowed here is refused by a server whose user may only read, and only some functions."""
    users, token = tmp_path / "users.toml", tmp_path / "token"
    words = ("token", "create", "assistant", "--may", "read:mail.*", "--users-file", str(users))
    token.write_text(serving.run_command(tmp_path, *words).stdout)
    listen = ("--store", "memory", "--listen", "gearman://127.0.0.1:0?may=submit", "--users-file", str(users))
    with serving.serve(*listen) as server, Peer(server.port) as client:
        for function in (b"mail.send", b"salary"):
            client.submit(function, b"", b"", kind=Kind.SUBMIT_JOB_BG)
        with assistant_of(server.url, "--token-file", str(token), "--allow", "pause") as assistant:
            assert [job["function"] for job in assistant.call("jobs")["items"]] == ["mail.send"]
            assert "assistant" in assistant.refusal("pause", function="mail.send")


def test_list_and_wrong_verbs() -> None:
    listed = run("", "mcp", "--list", "--json", "--allow", "pause").json
    assert {tool["name"] for tool in listed if tool["changes"]} == {"pause"}
    assert "why_waiting" in run("", "mcp", "--list").text
    refused = run("", "mcp", "--allow", "fence", code=2).err
    assert "no verb for --allow" in refused.replace("\n", " ")


def test_help_names_every_verb() -> None:
    text = run("", "mcp", "--help").text
    for verb in ("retry", "cancel", "delete", "pause", "resume", "bulk", "cron_remove"):
        assert verb in text


def test_without_the_package(tmp_path: Path) -> None:
    """The error says what to install."""
    program = "import sys; sys.modules['mcp'] = None; from geartrain.cli.main import main; main()"
    command = [sys.executable, "-c", program, "mcp"]
    done = subprocess.run(command, env=process.clean_environment(tmp_path), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "needs the package mcp, version 2 or newer: pip install 'geartrain[mcp]'" in done.stderr


def _settled(peer: Peer) -> None:
    """The server has handled what the peer sent."""
    peer.send(Kind.ECHO_REQ, b"").expect(Kind.ECHO_RES, b"")
