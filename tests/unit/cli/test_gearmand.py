"""What gearmand's options mean here."""

import os
from pathlib import Path
from typing import Any

import pytest

import geartrain
from geartrain.cli import gearmand
from geartrain.errors import SettingsError
from geartrain.model import Expiry
from geartrain.server.config.settings import Settings
from geartrain.server.process import log
from geartrain.server.process.launch import ProcessOptions

QUIET = ["--log-file=none", "--pid-file=x.pid"]


def translate(*words: str, **environment: str) -> tuple[dict[str, Any], list[str]]:
    values = gearmand.read_options(["--config-file=/dev/null", *QUIET, *words])
    return gearmand.translate(values, environment)


def settings(*words: str, **environment: str) -> Settings:
    values = gearmand.read_options(["--config-file=/dev/null", *QUIET, *words])
    flags, _ = gearmand.translate(values, environment)
    return gearmand.load_settings(flags, values, {"GEARTRAIN_CONFIG": "/dev/null", **environment})


def warnings(*words: str) -> list[str]:
    return translate(*words)[1]


def test_without_options() -> None:
    made = settings()
    assert [str(address) for address in made.listen] == ["gearman://*:4730"]
    assert made.store == "memory"
    assert made.max_attempts == 0
    assert made.log_level == "error"
    assert not made.exceptions
    assert not made.tls_certificate
    ours = Settings()
    assert (made.backlog, made.wake_count, made.keepalive_idle) == (
        ours.backlog,
        ours.wake_count,
        ours.keepalive_idle,
    )
    assert warnings() == []


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (["-b", "64"], "backlog", 64),
        (["-b", "-1"], "backlog", Settings().backlog),
        (["--exceptions"], "exceptions", True),
        (["-j", "3"], "max_attempts", 3),
        (["-j0"], "max_attempts", 0),
        (["-j", "-1"], "max_attempts", 0),
        (["--job-handle-prefix=X:pre"], "handle_prefix", "X:pre"),
        (["--keepalive"], "keepalive", True),
        (["--keepalive-idle=30"], "keepalive_idle", 30),
        (["--keepalive-idle=-1"], "keepalive_idle", -1),
        (["--keepalive-interval=0"], "keepalive_interval", -1),
        (["--keepalive-count=9"], "keepalive_count", 9),
        (["-w", "5"], "wake_count", 5),
        (["-w0"], "wake_count", 0),
        (["--verbose", "FATAL"], "log_level", "fatal"),
        (["--verbose=NOTICE"], "log_level", "notice"),
        (["-q", "builtin"], "store", "memory"),
        (["-q", "LibSqlite3", "--libsqlite3-db=/var/jobs.db"], "store", "sqlite:///var/jobs.db"),
        (["-R"], "store", "memory"),
    ],
)
def test_option_sets_a_setting(words: list[str], name: str, value: object) -> None:
    assert getattr(settings(*words), name) == value
    assert warnings(*words) == []


@pytest.mark.parametrize(
    ("words", "attempts"), [([], 0), (["-j", "-1"], 0), (["-j0"], 1), (["-j", "+0"], 1), (["-j1"], 1), (["-j2"], 2)]
)
def test_job_retries_of_gearmand_2(words: list[str], attempts: int) -> None:
    assert settings(*words, GEARTRAIN_JOB_RETRIES_ZERO="none").max_attempts == attempts


@pytest.mark.parametrize(
    ("words", "environment", "name", "value"),
    [
        ([], {}, "job_timeout_action", Expiry.REQUEUE),
        (["--job-timeout-action=fail"], {}, "job_timeout_action", Expiry.FAIL),
        ([], {"GEARTRAIN_JOB_TIMEOUT_ACTION": "fail"}, "job_timeout_action", Expiry.FAIL),
        ([], {}, "max_packet", 4095 * 1024**2),
        (["--max-packet=1MiB"], {}, "max_packet", 1024**2),
        ([], {"GEARTRAIN_MAX_PACKET": "2MiB"}, "max_packet", 2 * 1024**2),
        (["--max-packet", "1MiB"], {"GEARTRAIN_MAX_PACKET": "2MiB"}, "max_packet", 1024**2),
    ],
)
def test_defaults_of_gearmand_give_way_to_what_was_set(
    words: list[str], environment: dict[str, str], name: str, value: object
) -> None:
    assert getattr(settings(*words, **environment), name) == value


@pytest.mark.parametrize(
    ("words", "environment", "url"),
    [
        (["-p", "4731"], {}, "gearman://*:4731"),
        ([], {"GEARMAND_PORT": "4732"}, "gearman://*:4732"),
        (["-p4731"], {"GEARMAND_PORT": "4732"}, "gearman://*:4731"),
        (["-L", "localhost"], {}, "gearman://localhost:4730"),
        (["-L", "::1", "-p0"], {}, "gearman://[::1]:0"),
        (["-L127.0.0.1", "-p", "http"], {}, "gearman://127.0.0.1:80"),
    ],
)
def test_address(words: list[str], environment: dict[str, str], url: str) -> None:
    [address] = settings(*words, **environment).listen
    assert str(address) == url


@pytest.mark.parametrize("port", ["abc", "70000", "=4731", "-5"])
def test_bad_port(port: str) -> None:
    with pytest.raises(SettingsError, match=f"unknown port '{port}'"):
        translate("--port", port)


@pytest.mark.parametrize("level", ["info", "LOUD", ""])
def test_bad_level(level: str) -> None:
    with pytest.raises(SettingsError, match="Invalid value for --verbose supplied"):
        translate("--verbose", level)


@pytest.mark.parametrize("queue", ["libmemcached", "Postgres", "redis", "MySQL", "nonsense"])
def test_unsupported_queue_type_is_refused(queue: str) -> None:
    with pytest.raises(SettingsError, match=f"queue type '{queue}' is not supported"):
        translate("-q", queue)


def test_sqlite_needs_a_file() -> None:
    with pytest.raises(SettingsError, match="--queue-type libsqlite3 needs --libsqlite3-db"):
        translate("-q", "libsqlite3")


def test_relative_database_file_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert settings("-q", "libsqlite3", "--libsqlite3-db", "x.db").store == f"sqlite://{tmp_path}/x.db"


@pytest.mark.parametrize(
    ("words", "url"),
    [
        (["-r", "http"], "http://*:8080"),
        (["-r", "http", "--http-port=18080"], "http://*:18080"),
        (["-r", "http", "-L", "127.0.0.1"], "http://127.0.0.1:8080"),
    ],
)
def test_protocol_http(words: list[str], url: str) -> None:
    made = settings(*words)
    assert made.gearmand_http
    assert [str(address) for address in made.listen][1:] == [url]
    assert warnings(*words) == []


def test_http_port_without_the_protocol_opens_the_dashboard() -> None:
    made = settings("--http-port=18080")
    assert not made.gearmand_http
    assert [str(address) for address in made.listen] == ["gearman://*:4730", "http://*:18080"]
    assert warnings("--http-port=18080") == []


def test_addresses_of_our_own_settings_are_added(tmp_path: Path) -> None:
    file = tmp_path / "geartrain.toml"
    file.write_text('listen = ["http://127.0.0.1:4780", "gearman://127.0.0.1:4730"]\n')

    def listen(**environment: str) -> list[str]:
        return list(translate("--http-port=8080", **environment)[0]["listen"])

    own = ["gearman://*:4730", "http://*:8080"]
    assert listen(GEARTRAIN_CONFIG=str(file)) == [*own, "http://127.0.0.1:4780"]
    assert listen(GEARTRAIN_CONFIG=str(file), GEARTRAIN_LISTEN="periodic://127.0.0.1:5000") == [
        *own,
        "periodic://127.0.0.1:5000",
    ]


def test_unknown_protocol_is_refused() -> None:
    with pytest.raises(SettingsError, match="unknown protocol module: soap"):
        translate("-r", "soap")


def test_options_without_effect_are_warnings() -> None:
    assert warnings("--hashtable-buckets=7", "--mysql-host=x") == [
        "--hashtable-buckets has no effect: tables grow automatically",
        "--mysql-host has no effect: this queue type is not supported",
    ]


def test_tls_from_options() -> None:
    made = settings("--ssl", "--ssl-certificate=c", "--ssl-key=k", "--ssl-ca-file=a")
    assert (made.tls_certificate, made.tls_key, made.tls_ca) == ("c", "k", "a")
    assert [address.tls for address in made.listen] == [True]


def test_tls_from_the_environment() -> None:
    environment = {"GEARMAND_SERVER_PEM": "c", "GEARMAND_SERVER_KEY": "k", "GEARMAND_CA_CERTIFICATE": "a"}
    made = settings("--ssl", **environment)
    assert (made.tls_certificate, made.tls_key, made.tls_ca) == ("c", "k", "a")
    assert settings(**environment).tls_certificate == ""


def test_tls_without_a_certificate_is_refused() -> None:
    with pytest.raises(SettingsError, match="refusing to serve without TLS"):
        translate("--ssl")


def test_tls_files_without_tls_are_a_warning() -> None:
    assert warnings("--ssl-key=k") == ["--ssl-key has no effect without --ssl"]


@pytest.mark.parametrize("target", ["stderr", "none"])
def test_log_to_no_file(target: str) -> None:
    flags, said = gearmand.translate({"log-file": target, "pid-file": "x"}, {})
    assert (flags["log_file"], said) == (target, [])


def test_log_file_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    flags, said = gearmand.translate({"log-file": "g.log", "pid-file": "x"}, {})
    assert (flags["log_file"], said) == (str(tmp_path / "g.log"), [])


def test_log_file_that_cannot_be_opened_becomes_stderr(tmp_path: Path) -> None:
    path = tmp_path / "absent" / "g.log"
    flags, said = gearmand.translate({"log-file": str(path), "pid-file": "x"}, {})
    assert flags["log_file"] == "stderr"
    assert said == [f"could not open the log file {path} (No such file or directory); logging to stderr"]


@pytest.mark.parametrize("there", [True, False])
def test_syslog(there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "SYSLOG_SOCKET", str(tmp_path if there else tmp_path / "absent"))
    flags, said = gearmand.translate({"syslog": "", "pid-file": "x"}, {})
    assert flags["log_file"] == ("syslog" if there else "stderr")
    assert len(said) == (0 if there else 1)


def test_default_pid_file_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    flags, said = gearmand.translate({"log-file": "none"}, {})
    assert flags["pid_file"] == ""
    assert said == ["could not write the pid file /var/gearmand.pid; continuing without one"]
    monkeypatch.setattr(os, "access", lambda path, mode: True)
    flags, said = gearmand.translate({"log-file": "none"}, {})
    assert (flags["pid_file"], said) == ("/var/gearmand.pid", [])


def test_process() -> None:
    assert gearmand.process({}) == ProcessOptions()
    values = {"daemon": "", "user": "gearman", "file-descriptors": "4096", "coredump": ""}
    assert gearmand.process(values) == ProcessOptions(daemon=True, user="gearman", file_limit=4096, core=True)


def test_command_line_wins_over_the_configuration_file(tmp_path: Path) -> None:
    path = tmp_path / "gearmand.conf"
    path.write_text("--port=1 --listen=file")
    for name in (f"--config-file={path}", f"@{path}"):
        values = gearmand.read_options([name, "--port=2"])
        assert (values["port"], values["listen"]) == ("2", "file")


def test_named_configuration_file_must_exist() -> None:
    with pytest.raises(SettingsError, match="could not open the configuration file /nowhere: No such file"):
        gearmand.read_options(["--config-file=/nowhere"])


def run(*words: str) -> int:
    return gearmand.run(["--config-file=/dev/null", *words], {"GEARTRAIN_CONFIG": "/dev/null"})


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("-V") == 0
    out = capsys.readouterr().out
    assert out.startswith(f"\ngearmand 1.1.20 compatible, geartrain {geartrain.__version__} - ")
    assert out.endswith("\n")


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("-h") == 0
    assert "-q [ --queue-type ] arg (=builtin)" in capsys.readouterr().out


def test_error_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--bogus") == 1
    out, err = capsys.readouterr()
    assert (out, err) == ("", "gearmand: unrecognised option '--bogus'\n")


def test_check_args_starts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*QUIET, "--check-args", "-t", "8", "--hashtable-buckets=7") == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "gearmand: warning: --hashtable-buckets has no effect: tables grow automatically\n"


def test_our_settings_apply_where_gearmand_has_no_option(capsys: pytest.CaptureFixture[str]) -> None:
    environment = {"GEARTRAIN_CONFIG": "/dev/null", "GEARTRAIN_LINGER": "never"}
    assert gearmand.run([*QUIET, "--config-file=/dev/null", "--check-args"], environment) == 1
    assert capsys.readouterr().err.startswith("gearmand: GEARTRAIN_LINGER=never: must be a time")
