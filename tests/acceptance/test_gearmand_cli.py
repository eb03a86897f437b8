"""`geartrain gearmand` as a process: it starts, works and ends as gearmand does, and says where it differs."""

import contextlib
import os
import pwd
import random
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import process, serving
from tests.support.gearman_peer import Kind, Peer
from tests.support.peer import until
from tests.support.serving import ServerProcess

OWN = ("--config-file=/dev/null", "--listen=127.0.0.1", "--pid-file=gearmand.pid")
FOREGROUND = (*OWN, "--port=0", "--log-file=stderr")


def command(*words: str) -> list[str]:
    return [str(serving.installed_command()), "gearmand", *words]


@contextlib.contextmanager
def running(folder: Path, *words: str, **environment: str) -> Iterator[ServerProcess]:
    """The server in the foreground, once it listens."""
    variables = [f"{name}={value}" for name, value in environment.items()]
    server = ServerProcess(["env", *variables, *command(*words)], folder)
    try:
        server.wait_for_doors(1)
        yield server
    except BaseException:
        server.kill()
        print(server.account(), file=sys.stderr)
        raise
    server.stop()


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*words),
        cwd=folder,
        env=process.clean_environment(folder),
        capture_output=True,
        text=True,
        timeout=60,
    )


def ask(port: int, line: str) -> bytes:
    with Peer(port) as admin:
        return admin.text(line).line().strip()


def is_there(pid: int) -> bool:
    """Whether the process runs; a zombie counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@contextlib.contextmanager
def daemon(folder: Path, *words: str) -> Iterator[tuple[int, int]]:
    """The server in the background on a free port, for the block: its process id and the port."""
    for port in random.sample(serving.PORTS, 5):
        answer = run(folder, *OWN, "--daemon", f"--port={port}", *words)
        if "Address already in use" not in answer.stderr:
            break
    assert answer.returncode == 0, answer.stderr
    pid = int((folder / "gearmand.pid").read_text())
    try:
        yield pid, port
        if is_there(pid):
            os.kill(pid, signal.SIGTERM)
        until(lambda: not is_there(pid), "the server ends")
    finally:
        if is_there(pid):
            os.kill(pid, signal.SIGKILL)


def test_foreground(tmp_path: Path) -> None:
    with running(tmp_path, *FOREGROUND) as server:
        assert ask(server.port, "getpid") == b"OK %d" % server.pid
        assert ask(server.port, "verbose") == b"OK ERROR"
        assert (tmp_path / "gearmand.pid").read_text() == f"{server.pid}\n"
        server.stop()
        assert server.stderr == ""
    assert not (tmp_path / "gearmand.pid").exists()


def test_debians_own_options(tmp_path: Path) -> None:
    """What /etc/default/gearman-job-server has, with another port and other paths."""
    with running(tmp_path, *OWN, "--port=0", f"--log-file={tmp_path}/gearmand.log", "--verbose=INFO") as server:
        assert ask(server.port, "verbose") == b"OK INFO"
        assert "listening  address=gearman://127.0.0.1" in (tmp_path / "gearmand.log").read_text()
        assert server.stderr == ""


def test_daemon_is_ready_when_the_command_ends(tmp_path: Path) -> None:
    with daemon(tmp_path, "--log-file=gearmand.log", "--verbose", "INFO") as (pid, port):
        assert ask(port, "getpid") == b"OK %d" % pid
        assert os.getsid(pid) not in (pid, os.getsid(0))
        assert Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[4] == "0"  # no terminal
        for descriptor in (0, 1, 2):
            assert os.readlink(f"/proc/{pid}/fd/{descriptor}") == "/dev/null"
    assert not (tmp_path / "gearmand.pid").exists()
    assert (tmp_path / "gearmand.log").read_text().endswith("info server  stopped\n")


def test_daemon_that_cannot_start_is_an_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        answer = run(tmp_path, *OWN, "--daemon", f"--port={port}", "--log-file=gearmand.log")
    assert answer.returncode == 1
    assert answer.stderr == f"gearmand: cannot listen on gearman://127.0.0.1:{port}: Address already in use\n"
    assert "critical server  start failed" in (tmp_path / "gearmand.log").read_text()
    assert not (tmp_path / "gearmand.pid").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGUSR1])
def test_daemon_handles_signals(tmp_path: Path, number: signal.Signals) -> None:
    with daemon(tmp_path, "--log-file=none") as (pid, _):
        os.kill(pid, number)
        until(lambda: not is_there(pid), "the server ends")


def test_daemons_log_is_reopened(tmp_path: Path) -> None:
    log = tmp_path / "gearmand.log"
    with daemon(tmp_path, "--log-file=gearmand.log", "--verbose=INFO") as (pid, _):
        log.rename(tmp_path / "gearmand.log.1")
        os.kill(pid, signal.SIGHUP)
        until(lambda: log.exists() and "reopened" in log.read_text(), "the log goes on in a new file")


def test_configuration_file(tmp_path: Path) -> None:
    config = tmp_path / "gearmand.conf"
    config.write_text("--listen=127.0.0.1 --port=0\n--pid-file=file.pid --verbose=DEBUG\n-R\n")
    for name in (f"--config-file={config}", f"@{config}"):
        with running(tmp_path, name, "--log-file", "stderr", "--verbose", "NOTICE") as server:
            assert ask(server.port, "verbose") == b"OK NOTICE"
            assert (tmp_path / "file.pid").exists()


def test_port_from_the_environment(tmp_path: Path) -> None:
    options = [word for word in FOREGROUND if word != "--port=0"]
    with running(tmp_path, *options, GEARMAND_PORT="0") as server:
        assert ask(server.port, "version").startswith(b"OK ")


def test_handle_prefix_and_exceptions(tmp_path: Path) -> None:
    words = [*FOREGROUND, "--job-handle-prefix=X:pre", "--exceptions"]
    with running(tmp_path, *words) as server, Peer(server.port) as client, Peer(server.port) as worker:
        worker.register(b"f")
        handle = client.submit(b"f")
        assert handle.startswith(b"X:pre:")
        worker.grab()
        worker.send(Kind.WORK_EXCEPTION, handle, b"boom")
        client.expect(Kind.WORK_EXCEPTION, handle, b"boom")


def lose_a_worker(port: int) -> None:
    with Peer(port) as worker:
        worker.register(b"f")
        worker.grab()


def test_job_retries(tmp_path: Path) -> None:
    """N attempts in all; the waiting client is told."""
    with running(tmp_path, *FOREGROUND, "-j2") as server, Peer(server.port) as client:
        handle = client.submit(b"f")
        lose_a_worker(server.port)
        assert client.status(handle)[0] == 1
        lose_a_worker(server.port)
        client.expect(Kind.WORK_FAIL, handle)


def test_job_retries_of_gearmand_2(tmp_path: Path) -> None:
    """By gearmand 2.0.0's meaning 0 is no retry: the first lost worker is the end."""
    with (
        running(tmp_path, *FOREGROUND, "-j0", GEARTRAIN_JOB_RETRIES_ZERO="none") as server,
        Peer(server.port) as client,
    ):
        handle = client.submit(b"f")
        lose_a_worker(server.port)
        client.expect(Kind.WORK_FAIL, handle)


@pytest.mark.parametrize(
    ("words", "zero"), [([], "unlimited"), (["-j0"], "unlimited"), (["-j", "-1"], "unlimited"), (["-j-1"], "none")]
)
def test_job_retries_are_unlimited(tmp_path: Path, words: list[str], zero: str) -> None:
    with (
        running(tmp_path, *FOREGROUND, *words, GEARTRAIN_JOB_RETRIES_ZERO=zero) as server,
        Peer(server.port) as client,
    ):
        handle = client.submit(b"f")
        for _ in range(12):
            lose_a_worker(server.port)
        with Peer(server.port) as worker:
            worker.register(b"f")
            worker.grab()
            worker.send(Kind.WORK_COMPLETE, handle, b"at last")
            client.expect(Kind.WORK_COMPLETE, handle, b"at last")


@pytest.mark.parametrize(("words", "woken"), [(["-w0"], 3), (["-w2"], 2), ([], 1)])
def test_worker_wakeup(tmp_path: Path, words: list[str], woken: int) -> None:
    """How many of three sleepers one job wakes. More are woken later if none of them comes for it."""
    with contextlib.ExitStack() as stack:
        grace = {"GEARTRAIN_WAKE_GRACE": "1h"}
        server = stack.enter_context(running(tmp_path, *FOREGROUND, *words, **grace))
        sleepers = [stack.enter_context(Peer(server.port)).register(b"f").sleep() for _ in range(3)]
        client = stack.enter_context(Peer(server.port))
        for sleeper in sleepers:
            sleeper.silence()
        client.submit(b"f", kind=Kind.SUBMIT_JOB_BG)
        heard = 0
        for sleeper in sleepers:
            sleeper.send(Kind.ECHO_REQ, b"end")
            heard += sleeper.packet()[0] == Kind.NOOP
        assert heard == woken


def test_jobs_survive_with_libsqlite3(tmp_path: Path) -> None:
    words = [*FOREGROUND, "-q", "libsqlite3", f"--libsqlite3-db={tmp_path}/queue.db"]
    with running(tmp_path, *words) as server, Peer(server.port) as client:
        handle = client.submit(b"f", data=b"kept", kind=Kind.SUBMIT_JOB_BG)
        server.process.kill()
        server.wait()
    with running(tmp_path, *words) as server, Peer(server.port) as worker:
        job = worker.register(b"f").grab()
        assert (job.handle, job.data) == (handle, b"kept")


def test_builtin_queue_leaves_nothing_on_disk(tmp_path: Path) -> None:
    with running(tmp_path, *FOREGROUND) as server, Peer(server.port) as client:
        client.submit(b"f", kind=Kind.SUBMIT_JOB_BG)
        left = {path.name for path in tmp_path.rglob("*")}
        assert left == {"gearmand.pid", "stderr"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["stray"], "unrecognised option 'stray'"),
        (["-v"], "unrecognised option '-v'"),
        (["--daem"], "unrecognised option '--daem'"),
        (["--port=1", "--port=2"], "option '--port' cannot be specified more than once"),
        (["-q", "MySQL", "--mysql-host=db"], "queue type 'MySQL' is not supported"),
        (["-q", "libsqlite3"], "--queue-type libsqlite3 needs --libsqlite3-db"),
        (["--ssl"], "--ssl needs --ssl-certificate and --ssl-key; refusing to serve without TLS"),
        (["--ssl", "--ssl-certificate=/nowhere", "--ssl-key=/nowhere"], "cannot load the TLS certificate"),
        (["--config-file=/nowhere"], "could not open the configuration file /nowhere"),
        (["-u", "nobody-at-all"], "unknown user 'nobody-at-all'"),
        (["-L", "192.0.2.1"], "cannot listen on gearman://192.0.2.1:"),
        (["-P", "/nowhere/x.pid", "-L", "127.0.0.1", "-p0"], "cannot write the pid file /nowhere/x.pid"),
        (["--job-handle-prefix=" + "x" * 50], "--handle-prefix " + "x" * 50 + ": must be 1 to 43 visible"),
    ],
)
def test_start_that_fails_is_one_line_and_exit_code_1(tmp_path: Path, words: list[str], said: str) -> None:
    given = {word.partition("=")[0] for word in words}
    own = ["--log-file=none"]
    if "-P" not in given:
        own.append("--pid-file=x.pid")
    if "--config-file" not in given:
        own.append("--config-file=/dev/null")
    answer = run(tmp_path, *words, *own)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr.splitlines()[-1].startswith(f"gearmand: {said}")
    assert all(line.startswith("gearmand: warning: ") for line in answer.stderr.splitlines()[:-1])


def test_warnings_do_not_stop_the_start(tmp_path: Path) -> None:
    words = ["--hashtable-buckets=997", "--libsqlite3-table=queue", "-t", "8", "-R", "--coredump"]
    with running(tmp_path, *FOREGROUND, "--verbose=INFO", *words) as server:
        assert ask(server.port, "version").startswith(b"OK ")
        said = server.stderr.splitlines()
    assert said[:2] == [
        "gearmand: warning: --hashtable-buckets has no effect: tables grow automatically",
        "gearmand: warning: --libsqlite3-table has no effect: the store has its own tables",
    ]
    assert said[2].endswith(
        'info server  option has no effect  option=--threads why="one event loop serves all connections"'
    )


def test_unwritable_log_file_becomes_stderr(tmp_path: Path) -> None:
    with running(tmp_path, *OWN, "--port=0", "--log-file=/nowhere/x.log", "--verbose=INFO") as server:
        warning, started, *_ = server.stderr.splitlines()
    assert warning.startswith("gearmand: warning: could not open the log file /nowhere/x.log")
    assert "info server  started" in started


def test_file_descriptors(tmp_path: Path) -> None:
    with running(tmp_path, *FOREGROUND, "-f", "123") as server:
        limits = Path(f"/proc/{server.pid}/limits").read_text()
        [line] = [line for line in limits.splitlines() if line.startswith("Max open files")]
        assert line.split()[3] == "123"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_user_is_switched_once_the_port_is_open(tmp_path: Path) -> None:
    with running(tmp_path, *FOREGROUND, "--user", "nobody") as server:
        assert ask(server.port, "version").startswith(b"OK ")
        status = Path(f"/proc/{server.pid}/status").read_text()
        [uids] = [line for line in status.splitlines() if line.startswith("Uid:")]
        assert set(uids.split()[1:]) == {str(pwd.getpwnam("nobody").pw_uid)}


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A directory that every user can reach; that of a test belongs to the test's user alone."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("owner", ["root", "nobody"])
def test_log_is_reopened_by_the_user(tmp_path: Path, open_folder: Path, owner: str) -> None:
    """In a directory of root's the next file is made by root, as logrotate's `create` does."""
    user = pwd.getpwnam("nobody")
    shutil.chown(open_folder, owner)
    log = open_folder / "gearmand.log"
    words = [*OWN, "--port=0", f"--log-file={log}", "--verbose=INFO", "--user=nobody"]
    with running(tmp_path, *words) as server:
        assert (log.stat().st_uid, log.stat().st_gid) == (user.pw_uid, user.pw_gid)
        server.signal(signal.SIGHUP)  # without a rotation: the same file
        until(lambda: "log file reopened" in log.read_text(), "the log is reopened")
        log.rename(open_folder / "gearmand.log.1")
        if owner == "root":
            log.touch()
            shutil.chown(log, "nobody")
        server.signal(signal.SIGHUP)
        until(lambda: log.exists() and "log file reopened" in log.read_text(), "the log goes on in a new file")
    with running(tmp_path, *words):
        assert log.stat().st_uid == user.pw_uid


def test_tls_from_options_and_environment(tmp_path: Path) -> None:
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    make += ["-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=gearmand"]
    subprocess.run([*make, "-addext", "subjectAltName=IP:127.0.0.1"], cwd=tmp_path, check=True, capture_output=True)
    context = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
    for words, environment in (
        (["--ssl-certificate=cert.pem", "--ssl-key=key.pem"], {}),
        ([], {"GEARMAND_SERVER_PEM": "cert.pem", "GEARMAND_SERVER_KEY": "key.pem"}),
    ):
        with (
            running(tmp_path, *FOREGROUND, "--ssl", *words, **environment) as server,
            socket.create_connection(("127.0.0.1", server.port), timeout=10) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
        ):
            connection.sendall(b"getpid\n")
            assert connection.recv(100) == b"OK %d\n" % server.pid


def test_called_by_gearmands_name(tmp_path: Path) -> None:
    link = tmp_path / "gearmand"
    link.symlink_to(serving.installed_command())
    answer = subprocess.run([str(link), "--version"], capture_output=True, text=True, timeout=60)
    assert answer.returncode == 0
    assert answer.stdout.startswith("\ngearmand 1.1.20 compatible, geartrain ")


def test_help(tmp_path: Path) -> None:
    answer = run(tmp_path, "--help")
    assert answer.returncode == 0
    assert "  -q [ --queue-type ] arg (=builtin)" in answer.stdout


@pytest.mark.peer("gearman")
def test_gearmans_own_tools(tmp_path: Path) -> None:
    with running(tmp_path, *FOREGROUND) as server:
        where = ["-h", "127.0.0.1", "-p", str(server.port)]
        worker = subprocess.Popen(["gearman", *where, "-w", "-c", "1", "-f", "upper", "--", "tr", "a-z", "A-Z"])
        try:
            client = ["gearman", *where, "-f", "upper", "hello"]
            answer = subprocess.run(client, capture_output=True, timeout=20)
            assert answer.stdout == b"HELLO"
            assert worker.wait(20) == 0
        finally:
            worker.kill()
            worker.wait()
