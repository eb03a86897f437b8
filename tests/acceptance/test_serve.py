"""`geartrain serve` as a process: addresses, settings, stopping, log, TLS and exit codes."""

import contextlib
import json
import os
import resource
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import serving
from tests.support.gearman_peer import Kind, Peer
from tests.support.peer import until
from tests.support.serving import ServerProcess

LISTEN = ("--listen", "gearman://127.0.0.1:0")
FREE_PORT = ("--store", "memory", *LISTEN)


@contextlib.contextmanager
def started(folder: Path, *words: str, **environment: str) -> Iterator[ServerProcess]:
    """The installed command in this folder and environment, once it listens."""
    variables = [f"{name}={value}" for name, value in environment.items()]
    server = ServerProcess(["env", *variables, str(serving.installed_command()), *words], folder)
    try:
        server.wait_for_doors(1)
        yield server
    except BaseException:
        server.kill()
        print(server.account(), file=sys.stderr)
        raise
    server.stop()


def ask(port: int, line: str) -> bytes:
    with Peer(port) as admin:
        return admin.text(line).line().strip()


def events(text: str) -> list[str]:
    """Log lines without their times."""
    return [line.split(" ", 1)[1] for line in text.splitlines()]


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that another socket listens on."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


# Addresses


def test_address_is_printed_on_stdout() -> None:
    with serving.serve(*FREE_PORT) as server:
        assert server.lines == [f"listening gearman://127.0.0.1:{server.port}"]
        assert ask(server.port, "getpid").split() == [b"OK", b"%d" % server.pid]


def test_several_addresses() -> None:
    with serving.serve(*FREE_PORT, *LISTEN) as server:
        ports = [int(url.rpartition(":")[2]) for url in server.urls]
        assert len(set(ports)) == 2
        assert all(ask(port, "getpid").split()[1] == b"%d" % server.pid for port in ports)


def test_jobs_run() -> None:
    with serving.serve(*FREE_PORT) as server, Peer(server.port) as client, Peer(server.port) as worker:
        worker.register(b"reverse")
        handle = client.submit(b"reverse", data=b"test")
        assert worker.grab().data == b"test"
        worker.send(Kind.WORK_COMPLETE, handle, b"tset")
        client.expect(Kind.WORK_COMPLETE, handle, b"tset")


def test_port_in_use_is_fatal(tmp_path: Path, taken: int) -> None:
    answer = serving.run_command(tmp_path, "serve", *FREE_PORT, "--listen", f"gearman://127.0.0.1:{taken}")
    assert answer.returncode == 1
    assert answer.stdout == ""
    assert answer.stderr == (f"geartrain: cannot listen on gearman://127.0.0.1:{taken}: Address already in use\n")


DEFAULT_PORT = """
import sys
from geartrain import address
from geartrain.cli import main
address.DEFAULT_PORTS.update(dict.fromkeys(address.DEFAULT_PORTS, 0), gearman=int(sys.argv.pop(1)))
main.main()
"""


def test_default_ports_without_listen(tmp_path: Path) -> None:
    """With another default port: the real one may be in use on this machine."""
    server = ServerProcess([sys.executable, "-c", DEFAULT_PORT, "0", "serve", "--store", "memory"], tmp_path)
    try:
        server.wait_for_doors(1)
        assert server.url.startswith("gearman://127.0.0.1:")
        server.stop()
    finally:
        server.kill()


def test_default_port_in_use_is_a_warning(tmp_path: Path, taken: int) -> None:
    server = ServerProcess([sys.executable, "-c", DEFAULT_PORT, str(taken), "serve", "--store", "memory"], tmp_path)
    try:
        server.wait_for_doors(1)
        assert not server.url.startswith("gearman:")
        assert server.says(
            "warning server  default port in use, skipped  "
            f'address=gearman://127.0.0.1:{taken} why="Address already in use"\n'
        )
        server.stop()
    finally:
        server.kill()


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            ["--listen", "http://0.0.0.0:0"],
            "http://0.0.0.0:0 is reachable from other machines, but no token is configured",
        ),
        (["--backlog", "x"], "--backlog x: must be a whole number, 1 or more"),
        (["--config", "/nowhere.toml"], "cannot read the settings file /nowhere.toml"),
        (["--log-file", "/nowhere/x.log"], "cannot open the log file /nowhere/x.log"),
        ([*FREE_PORT, "--pid-file", "/nowhere/x.pid"], "cannot write the pid file /nowhere/x.pid"),
        (["--tls-certificate", "/nowhere.pem"], "cannot load the TLS certificate and key from /nowhere.pem"),
        ([*FREE_PORT, "--tls-certificate", "x.pem"], "tls_certificate is set, but no listen address uses TLS"),
        (["--listen", "gearmans://127.0.0.1:0"], "gearmans://127.0.0.1:0 needs a certificate: set tls_certificate"),
    ],
)
def test_start_that_fails_is_one_line_and_exit_code_1(tmp_path: Path, words: list[str], error: str) -> None:
    answer = serving.run_command(tmp_path, "serve", "--store", "memory", "--log-level", "error", *words)
    assert (answer.returncode, answer.stdout) == (1, "")
    [line] = answer.stderr.splitlines()
    assert line.startswith(f"geartrain: {error}")


def test_failed_start_is_logged_in_the_log_file(tmp_path: Path, taken: int) -> None:
    answer = serving.run_command(
        tmp_path, "serve", "--store", "memory", "--log-file", "x.log", "--listen", f"gearman://127.0.0.1:{taken}"
    )
    assert answer.returncode == 1
    [line] = events((tmp_path / "x.log").read_text())
    assert line.startswith("critical server  start failed  why=")


# Settings


def test_settings_file_environment_and_flags(tmp_path: Path) -> None:
    config = tmp_path / "mine.toml"
    config.write_text(
        'store = "memory"\nlisten = ["gearman://127.0.0.1:0"]\nlog_level = "debug"\n'
        'handle_prefix = "X:file"\npid_file = "file.pid"\n'
    )
    environment = {"GEARTRAIN_CONFIG": str(config), "GEARTRAIN_LOG_LEVEL": "notice"}
    with started(tmp_path, "serve", "--pid-file", "flag.pid", **environment) as server:
        assert ask(server.port, "verbose") == b"OK NOTICE"
        assert (tmp_path / "flag.pid").read_text() == f"{server.pid}\n"
        assert not (tmp_path / "file.pid").exists()
        with Peer(server.port) as client:
            client.send(Kind.SUBMIT_JOB_BG, b"f", b"", b"")
            assert client.packet()[1].startswith(b"X:file:")


def test_settings_file_of_the_user_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "config" / "geartrain"
    folder.mkdir(parents=True)
    (folder / "geartrain.toml").write_text('store = "memory"\nlisten = "gearman://127.0.0.1:0"\nlog_level = "alert"\n')
    with started(tmp_path, "serve") as server:
        assert ask(server.port, "verbose") == b"OK ALERT"


def test_limits_apply() -> None:
    with serving.serve(*FREE_PORT, "--max-packet", "1kB") as server, Peer(server.port) as client:
        client.send(Kind.ECHO_REQ, b"x" * 1000)
        assert client.packet() == (Kind.ECHO_RES, b"x" * 1000)
        client.send(Kind.ECHO_REQ, b"x" * 1025)
        assert client.packet()[0] == Kind.ERROR


# Stopping


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stop_at_once(number: signal.Signals) -> None:
    with serving.serve(*FREE_PORT) as server, Peer(server.port) as worker, Peer(server.port) as client:
        hold_a_job(worker, client)
        server.signal(number)
        assert server.wait() == 0
        assert client.socket.recv(100) == b""
        server.check_stderr()


def test_second_signal_is_ignored() -> None:
    with serving.serve(*FREE_PORT) as server:
        for _ in range(3):
            server.signal(signal.SIGTERM)
        assert server.wait() == 0
        server.check_stderr()


def hold_a_job(worker: Peer, client: Peer, kind: Kind = Kind.SUBMIT_JOB) -> bytes:
    """A job that runs; its handle."""
    worker.register(b"f")
    handle = client.submit(b"f", kind=kind)
    assert worker.grab().handle == handle
    return handle


def refuses(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            return False
    except ConnectionError:
        return True


def test_graceful_stop_without_jobs() -> None:
    with serving.serve(*FREE_PORT) as server, Peer(server.port) as idle:
        idle.register(b"f")
        server.signal(signal.SIGUSR1)
        assert server.wait() == 0
        assert idle.socket.recv(100) == b""


def test_graceful_stop_lets_running_jobs_finish() -> None:
    with serving.serve(*FREE_PORT) as server, Peer(server.port) as worker, Peer(server.port) as client:
        handle = hold_a_job(worker, client)
        server.signal(signal.SIGUSR1)
        until(lambda: refuses(server.port), "new connections are refused")
        assert server.process.poll() is None
        worker.send(Kind.WORK_COMPLETE, handle, b"done")
        client.expect(Kind.WORK_COMPLETE, handle, b"done")
        assert server.wait() == 0
        server.check_stderr()


def test_graceful_stop_when_the_worker_is_lost() -> None:
    with serving.serve(*FREE_PORT) as server, Peer(server.port) as client:
        with Peer(server.port) as worker:
            hold_a_job(worker, client, Kind.SUBMIT_JOB_BG)
            server.signal(signal.SIGUSR1)
            until(lambda: refuses(server.port), "new connections are refused")
        assert server.wait() == 0
        assert server.says("unfinished jobs lost  jobs=1")


def test_graceful_stop_ends_after_its_timeout() -> None:
    flags = (*FREE_PORT, "--drain-timeout", "50ms")
    with serving.serve(*flags) as server, Peer(server.port) as worker, Peer(server.port) as client:
        hold_a_job(worker, client)
        server.signal(signal.SIGUSR1)
        assert server.wait() == 0
        assert server.says("drain timed out, stopping  jobs=1 seconds=0.05")


def test_sigterm_ends_a_graceful_stop() -> None:
    with serving.serve(*FREE_PORT) as server, Peer(server.port) as worker, Peer(server.port) as client:
        hold_a_job(worker, client)
        server.signal(signal.SIGUSR1)
        until(lambda: refuses(server.port), "new connections are refused")
        server.signal(signal.SIGTERM)
        assert server.wait() == 0


@pytest.mark.parametrize("command", ["shutdown", "shutdown graceful"])
def test_stop_by_an_administrator(command: str) -> None:
    with serving.serve(*FREE_PORT) as server:
        assert ask(server.port, command).startswith(b"OK")
        assert server.wait() == 0
        server.check_stderr()


def test_peer_that_does_not_read_does_not_delay_a_stop() -> None:
    with serving.serve(*FREE_PORT) as server, Peer(server.port) as deaf:
        deaf.send(Kind.ECHO_REQ, b"x" * 20_000_000)
        until(lambda: ask(server.port, "getpid") != b"", "the server is still there")
        server.signal(signal.SIGTERM)
        assert server.wait() == 0


def test_handles_are_not_reused_after_a_restart(tmp_path: Path) -> None:
    handles = []
    for _ in range(2):
        with serving.serve(*FREE_PORT) as server, Peer(server.port) as client:
            for _ in range(3):
                client.send(Kind.SUBMIT_JOB_BG, b"f", b"", b"x")
                handles.append(client.packet()[1])
    numbers = [int(handle.rpartition(b":")[2]) for handle in handles]
    assert numbers == sorted(set(numbers))
    assert handles[0].startswith(b"H:" + os.uname().nodename.encode()[:41] + b":")
    assert max(map(len, handles)) < 64


# Files and log


def test_pid_file(tmp_path: Path) -> None:
    path = tmp_path / "geartrain.pid"
    with serving.serve(*FREE_PORT, "--pid-file", str(path)) as server:
        assert path.read_text() == f"{server.pid}\n"
    assert not path.exists()


def test_failed_start_leaves_a_running_servers_pid_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "geartrain.pid"
    with serving.serve(*FREE_PORT, "--pid-file", str(path)) as server:
        answer = serving.run_command(
            tmp_path, "serve", "--store=memory", "--listen", server.url, "--pid-file", str(path)
        )
        assert answer.returncode == 1
        assert path.read_text() == f"{server.pid}\n"


def test_log_is_quiet_by_default() -> None:
    with serving.serve(*FREE_PORT) as server:
        ask(server.port, "version")
        server.stop()
        start, door, stop = events(server.stderr)
    assert start.startswith("info server  started  version=")
    assert door == f"info gearman  listening  address={server.url}"
    assert stop == "info server  stopped"


def test_connections_are_logged_for_debugging_and_for_machines() -> None:
    with serving.serve(*FREE_PORT, "--log-level", "debug", "--log-format", "json") as server:
        ask(server.port, "version")
        server.stop()
        logged = [json.loads(line) for line in server.stderr.splitlines()]
    connected = next(event for event in logged if event["message"] == "peer connected")
    assert connected["door"] == "gearman"
    assert connected["peer"].startswith("127.0.0.1:")


def test_log_file_is_reopened(tmp_path: Path) -> None:
    path, rotated = tmp_path / "server.log", tmp_path / "server.log.1"
    with serving.serve(*FREE_PORT, "--log-file", str(path)) as server:
        path.rename(rotated)
        server.signal(signal.SIGHUP)
        until(lambda: path.exists() and path.read_text() != "", "the log goes on in a new file")
        server.stop()
        assert server.stderr == ""
    assert events(rotated.read_text())[0].startswith("info server  started")
    assert events(path.read_text()) == ["info server  log file reopened", "info server  stopped"]


# The process and its surroundings


def test_systemd_is_notified(tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(20)
        manager.bind(path)
        with started(tmp_path, "serve", *FREE_PORT, NOTIFY_SOCKET=path) as server:
            ready = manager.recv(4096).decode().splitlines()
            assert ready == ["READY=1", f"STATUS=serving {server.url}", f"MAINPID={server.pid}"]
            server.signal(signal.SIGHUP)
            assert manager.recv(4096).startswith(b"RELOADING=1\nMONOTONIC_USEC=")
            assert manager.recv(4096).startswith(b"READY=1\n")
            server.signal(signal.SIGUSR1)
            assert manager.recv(4096) == b"STOPPING=1\nSTATUS=waiting for running jobs"
            assert server.wait() == 0


def test_without_uvloop(tmp_path: Path) -> None:
    (tmp_path / "uvloop.py").write_text("raise ImportError('not on this machine')\n")
    with started(tmp_path, "serve", *FREE_PORT, PYTHONPATH=str(tmp_path)) as server:
        assert server.says("loop=asyncio")
        with Peer(server.port) as worker, Peer(server.port) as client:
            handle = hold_a_job(worker, client)
            server.signal(signal.SIGUSR1)
            until(lambda: refuses(server.port), "new connections are refused")
            worker.send(Kind.WORK_COMPLETE, handle, b"done")
            client.expect(Kind.WORK_COMPLETE, handle, b"done")
            assert server.wait() == 0
            server.check_stderr()


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams(tmp_path: Path, closed: str) -> None:
    """Some supervisors start processes with closed streams."""
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh"]
    command = [str(serving.installed_command()), "serve", *FREE_PORT, "--pid-file", "x.pid"]
    server = ServerProcess([*shell, *command], tmp_path)
    try:
        until(lambda: (tmp_path / "x.pid").exists() and server.process.poll() is None, "the server is there")
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
    finally:
        server.kill()


def test_file_limit_is_raised(tmp_path: Path) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limited = ["sh", "-c", 'ulimit -S -n 64; exec "$@"', "sh"]
    server = ServerProcess([*limited, str(serving.installed_command()), "serve", *FREE_PORT], tmp_path)
    try:
        server.wait_for_doors(1)
        assert resource.prlimit(server.pid, resource.RLIMIT_NOFILE) == (hard, hard)
        server.stop()
    finally:
        server.kill()


# TLS


# Help


def test_help_and_version(tmp_path: Path) -> None:
    answer = serving.run_command(tmp_path, "--help")
    assert answer.returncode == 0
    assert "serve" in answer.stdout
    answer = serving.run_command(tmp_path, "serve", "--help")
    assert answer.returncode == 0
    for lesson in ("--listen", "GEARTRAIN_MAX_PACKET=1MiB", "Examples", "geartrain.toml", "gearmand --help"):
        assert lesson in answer.stdout
    answer = serving.run_command(tmp_path, "version", "--json")
    assert json.loads(answer.stdout)["loop"] in ("uvloop", "asyncio")


@pytest.mark.parametrize("words", [["serve", "--bogus"], ["serve", "--backlog"], ["bogus"]])
def test_wrong_usage_is_exit_code_2(tmp_path: Path, words: list[str]) -> None:
    answer = serving.run_command(tmp_path, *words)
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert "Traceback" not in answer.stderr
