"""Loading settings: the sources, which of them wins, and the errors for invalid values."""

from pathlib import Path
from typing import Any

import pytest

from geartrain import address
from geartrain.address import Address
from geartrain.errors import SettingsError
from geartrain.model import Expiry, FailureAction
from geartrain.server.config import load as sources
from geartrain.server.config.settings import TABLE, Settings

NO_FILE = {"GEARTRAIN_CONFIG": "/dev/null"}

# For every setting a value as text, and what it means.
GOOD: dict[str, tuple[str, Any]] = {
    "listen": (
        "gearman://127.0.0.1:0, gearman://[::1]",
        (Address("gearman", "127.0.0.1", 0, ""), Address("gearman", "::1", 4730, "")),
    ),
    "danga_on_gearman_port": ("true", True),
    "store": ("sqlite:///var/lib/jobs.db", "sqlite:///var/lib/jobs.db"),
    "node_name": ("east", "east"),
    "advertise": ("10.0.0.5:4730", "10.0.0.5:4730"),
    "lease": ("5s", 5.0),
    "store_patience": ("30s", 30.0),
    "unique_scope": ("server", "server"),
    "cluster_status": ("server", "server"),
    "takeover_jobs": ("10", 10),
    "link_grace": ("5s", 5.0),
    "keep_records_for": ("2h", 7200.0),
    "keep_records": ("0", 0),
    "keep_failed_for": ("2d", 172800.0),
    "keep_failed": ("5", 5),
    "keep_failed_bytes": ("2GiB", 2 * 1024**3),
    "keep_failed_bytes_in_memory": ("1MiB", 1024 * 1024),
    "keep_dead_for": ("1h", 3600.0),
    "keep_dead": ("100", 100),
    "result_limit": ("1KiB", 1024),
    "result_max": ("1MiB", 1024 * 1024),
    "keep_results": ("2GiB", 2 * 1024**3),
    "keep_results_in_memory": ("1MiB", 1024 * 1024),
    "max_attempts": ("0", 0),
    "failures": ("dead", FailureAction.DEAD),
    "job_retries_zero": ("none", "none"),
    "handle_prefix": ("X:pre", "X:pre"),
    "job_timeout_unit": ("seconds", "seconds"),
    "job_timeout_action": ("requeue", Expiry.REQUEUE),
    "exceptions": ("true", True),
    "periodic_token": ("secret", "secret"),
    "periodic_quiet": (
        "periodic://127.0.0.1, periodic+unix:///run/p.sock",
        (Address("periodic", "127.0.0.1", 5000, ""), Address("periodic+unix", "", 0, "/run/p.sock")),
    ),
    "http_tokens": ("read:secret-one, admin:secret-two", ("read:secret-one", "admin:secret-two")),
    "http_tokens_file": ("tokens", "tokens"),
    "http_without_token": ("true", True),
    "http_hosts": ("jobs.example jobs.lan", ("jobs.example", "jobs.lan")),
    "http_trusted_proxies": ("127.0.0.1 10.0.0.0/8 ::1", ("127.0.0.1", "10.0.0.0/8", "::1")),
    "memodb_origins": ("https://app.example, http://[::1]:80", ("https://app.example", "http://[::1]:80")),
    "http_worker_lease": ("5m", 300.0),
    "http_listeners": ("10", 10),
    "http_listeners_per_client": ("0", 0),
    "gearmand_http": ("true", True),
    "metrics_functions": ("0", 0),
    "control": ("false", False),
    "worker_lease": ("5m", 300.0),
    "gearmonkey_grace": ("5m", 300.0),
    "wake_count": ("3", 3),
    "wake_grace": ("20ms", 0.02),
    "linger": ("0", 0.0),
    "memodb_heartbeat": ("5s", 5.0),
    "memodb_worker_timeout": ("100ms", 0.1),
    "memodb_queue_timeout": ("1m", 60.0),
    "memodb_requests_per_pipe": ("500", 500),
    "max_packet": ("1MiB", 1024**2),
    "max_connections": ("5", 5),
    "max_functions": ("5", 5),
    "max_workflow_jobs": ("5", 5),
    "forget_functions_after": ("1d", 86400.0),
    "max_queued_bytes": ("1GiB", 1024**3),
    "payload_memory": ("0", 0),
    "max_abilities": ("5", 5),
    "write_limit": ("500kB", 500_000),
    "slow_reader_timeout": ("2m", 120.0),
    "max_inflight_bytes": ("1MiB", 1024**2),
    "stall_timeout": ("2m", 120.0),
    "backlog": ("5", 5),
    "keepalive": ("0", False),
    "keepalive_idle": ("2m", 120),
    "keepalive_interval": ("-1", -1),
    "keepalive_count": ("-1", -1),
    "users_file": ("users.toml", "users.toml"),
    "trust_network": ("true", True),
    "tls_certificate": ("server.pem", "server.pem"),
    "tls_key": ("", ""),
    "tls_ca": ("", ""),
    "tls_crl": ("", ""),
    "tls_min_version": ("1.3", "1.3"),
    "log_file": ("none", "none"),
    "log_level": ("notice", "notice"),
    "log_format": ("json", "json"),
    "log_lines_per_peer": ("0", 0),
    "audit_file": ("/var/log/geartrain/audit.log", "/var/log/geartrain/audit.log"),
    "pid_file": ("geartrain.pid", "geartrain.pid"),
    "drain_timeout": ("1h", 3600.0),
}

# For every setting that can be wrong, values that are, and what is said to be allowed.
COUNT = "must be a whole number, 0 or more"
SIZE = "must be a size such as 64MiB, 500kB or a number of bytes"
DURATION_ABOVE_ZERO = "must be a time above zero such as 1ms, 60s, 2h or a number of seconds"
DURATION = "must be a time such as 1ms, 60s, 2h or a number of seconds"
SECONDS = "must be whole seconds such as 30 or 2m, or -1 for the system's own value"
LEVELS = "must be one of fatal, alert, critical, error, warning, notice, info, debug"
BAD: dict[str, tuple[str, list[str]]] = {
    "danga_on_gearman_port": ("must be true or false", ["yes", "7003"]),
    "store": (
        "must be memory, sqlite:///path/to/file or postgresql://user@host/database",
        ["disk", "sqlite:", "sqlite://host/x", "memory "],
    ),
    "lease": ("must be a time from 2s to 60s", ["1s", "61s", "long"]),
    "store_patience": (DURATION, ["-1s", "week"]),
    "unique_scope": ("must be one of cluster, server", ["world"]),
    "cluster_status": ("must be one of cluster, server", ["world"]),
    "takeover_jobs": (COUNT, ["-1", "all"]),
    "link_grace": (DURATION, ["-1s", "week"]),
    "keep_records_for": (DURATION, ["-1s", "week"]),
    "keep_records": (COUNT, ["-1", "all"]),
    "keep_failed_for": (DURATION, ["-1s", "week"]),
    "keep_failed": (COUNT, ["-1", "all"]),
    "keep_failed_bytes": (SIZE, ["-1", "all"]),
    "keep_failed_bytes_in_memory": (SIZE, ["-1", "all"]),
    "keep_dead_for": (DURATION, ["-1s", "forever"]),
    "keep_dead": (COUNT, ["-1", "all"]),
    "result_limit": (SIZE, ["-1", "all"]),
    "result_max": (SIZE, ["-1", "all"]),
    "keep_results": (SIZE, ["-1", "all"]),
    "keep_results_in_memory": (SIZE, ["-1", "all"]),
    "failures": ("must be one of keep, dead, forget", ["ignore", "KEEP"]),
    "max_attempts": (COUNT, ["-1", "ten", "1.5", "0x1", " 3"]),
    "job_retries_zero": ("must be one of unlimited, none", ["0", "never", "None"]),
    "handle_prefix": (
        "must be 1 to 43 visible ASCII characters without spaces",
        ["a b", "a\tb", "é", "x" * 44],
    ),
    "job_timeout_unit": ("must be one of milliseconds, seconds", ["ms", "minutes", "Seconds"]),
    "job_timeout_action": ("must be one of fail, requeue", ["retry"]),
    "exceptions": ("must be true or false", ["yes", "on", "2"]),
    "http_without_token": ("must be true or false", ["yes"]),
    "http_worker_lease": (DURATION_ABOVE_ZERO, ["0", "long"]),
    "http_trusted_proxies": (
        "must be a list of addresses or networks such as 127.0.0.1 or 10.0.0.0/8",
        ["proxy.lan", "10.0.0.0/33", "*"],
    ),
    "memodb_origins": (
        "must be a list of origins such as https://app.example or http://127.0.0.1:8000",
        ["app.example", "*", "null", "https://app.example/page"],
    ),
    "http_listeners": (COUNT, ["-1", "all"]),
    "http_listeners_per_client": (COUNT, ["-1", "all"]),
    "gearmand_http": ("must be true or false", ["maybe"]),
    "metrics_functions": (COUNT, ["-1", "all"]),
    "worker_lease": (DURATION, ["-1s", "long"]),
    "gearmonkey_grace": (DURATION, ["-1s", "long"]),
    "wake_count": (COUNT, ["-1", "all"]),
    "wake_grace": (DURATION, ["-1s", "soon", "1 fortnight"]),
    "linger": (DURATION, ["-1"]),
    "memodb_heartbeat": (DURATION_ABOVE_ZERO, ["0", "-1"]),
    "memodb_worker_timeout": (DURATION_ABOVE_ZERO, ["0", "soon"]),
    "memodb_queue_timeout": (DURATION_ABOVE_ZERO, ["0", "never"]),
    "memodb_requests_per_pipe": (COUNT, ["-1", "many"]),
    "max_packet": (SIZE, ["0", "64MB!", "1.5", "-1", "lots"]),
    "max_queued_bytes": (SIZE, ["0", "half"]),
    "payload_memory": ("must be 0, or a size such as 64MiB, 500kB or a number of bytes", ["-1", "half", "0.5"]),
    "forget_functions_after": (DURATION, ["-1", "never"]),
    "max_connections": ("must be a whole number, 1 or more", ["0", "-1", "all"]),
    "max_functions": ("must be a whole number, 1 or more", ["0", "-1", "all"]),
    "max_workflow_jobs": ("must be a whole number, 1 or more", ["0"]),
    "max_abilities": ("must be a whole number, 1 or more", ["0", "-1", "all"]),
    "write_limit": (SIZE, ["0", "1TB"]),
    "slow_reader_timeout": (DURATION_ABOVE_ZERO, ["0", "never"]),
    "max_inflight_bytes": (SIZE, ["0", "all"]),
    "stall_timeout": ("must be a time above zero such as 1ms, 60s, 2h or a number of seconds", ["0", "0ms", "x"]),
    "backlog": ("must be a whole number, 1 or more", ["0", "-5", "many"]),
    "keepalive": ("must be true or false", ["maybe"]),
    "control": ("must be true or false", ["perhaps"]),
    "trust_network": ("must be true or false", ["perhaps"]),
    "keepalive_idle": (SECONDS, ["0", "-2", "1ms", "1.5"]),
    "keepalive_interval": (SECONDS, ["0", "x"]),
    "keepalive_count": ("must be a whole number from 1, or -1 for the system's own value", ["0", "-2", "x"]),
    "tls_min_version": ("must be one of 1.2, 1.3", ["1.1", "1", "TLSv1.2"]),
    "log_level": (LEVELS, ["loud", "INFO"]),
    "log_format": ("must be one of text, json", ["xml"]),
    "log_lines_per_peer": (COUNT, ["-1", "all"]),
    "drain_timeout": (DURATION, ["never"]),
}


def load(flags: dict[str, Any] | None = None, environment: dict[str, str] | None = None) -> Settings:
    return sources.load(flags or {}, {**NO_FILE, **(environment or {})})


def write(folder: Path, text: str) -> str:
    path = folder / "geartrain.toml"
    path.write_text(text)
    return str(path)


def test_nothing_given_means_defaults() -> None:
    assert load() == Settings()


def test_every_setting_is_tested() -> None:
    assert GOOD.keys() == TABLE.keys()
    urls = {"listen", "periodic_quiet"}  # what is wrong with a URL is said in other words
    http = {"http_tokens", "http_tokens_file", "http_hosts"}  # tokens are read by the door, which never quotes one
    free_text = {
        *urls,
        *http,
        "node_name",
        "advertise",
        "periodic_token",
        "users_file",
        "tls_certificate",
        "tls_key",
        "tls_ca",
        "tls_crl",
        "log_file",
        "pid_file",
        "audit_file",
    }
    assert BAD.keys() == TABLE.keys() - free_text


@pytest.mark.parametrize("name", GOOD)
def test_value_from_a_flag(name: str) -> None:
    text, value = GOOD[name]
    assert getattr(load({name: text}), name) == value


@pytest.mark.parametrize("name", [name for name, (text, _) in GOOD.items() if text])
def test_value_from_the_environment(name: str) -> None:
    text, value = GOOD[name]
    assert getattr(load({}, {TABLE[name].variable: text}), name) == value


@pytest.mark.parametrize("name", GOOD)
def test_value_from_a_file_as_text(name: str, tmp_path: Path) -> None:
    text, value = GOOD[name]
    settings = load({"config": write(tmp_path, f"{name} = '{text}'\n")})
    assert getattr(settings, name) == value


def test_values_of_tomls_own_types(tmp_path: Path) -> None:
    lines = [
        'listen = ["gearman://127.0.0.1:1", "gearman://127.0.0.1:2"]',
        "max_packet = 1024",
        "linger = 0.002",
        "wake_grace = 1",
        "keepalive = false",
        "keepalive_idle = 30",
        "backlog = 7",
    ]
    settings = load({"config": write(tmp_path, "\n".join(lines))})
    assert [address.port for address in settings.listen] == [1, 2]
    assert (settings.max_packet, settings.linger, settings.wake_grace) == (1024, 0.002, 1.0)
    assert (settings.keepalive, settings.keepalive_idle, settings.backlog) == (False, 30, 7)


def test_flags_win_over_environment_over_file_over_defaults(tmp_path: Path) -> None:
    path = write(tmp_path, "backlog = 1\nmax_attempts = 1\nwake_count = 5\n")
    environment = {"GEARTRAIN_CONFIG": path, "GEARTRAIN_BACKLOG": "2", "GEARTRAIN_MAX_ATTEMPTS": "2"}
    settings = sources.load({"backlog": "3", "max_attempts": None, "listen": None}, environment)
    assert (settings.backlog, settings.max_attempts, settings.wake_count) == (3, 2, 5)
    assert settings.keepalive_count == Settings().keepalive_count


def test_flag_names_the_file_before_the_environment_does(tmp_path: Path) -> None:
    path = write(tmp_path, "backlog = 9\n")
    assert sources.load({"config": path}, {"GEARTRAIN_CONFIG": "/nowhere"}).backlog == 9


def test_switch_can_be_turned_off_by_flag() -> None:
    assert load({"exceptions": False}, {"GEARTRAIN_EXCEPTIONS": "true"}).exceptions is False


def test_text_can_be_emptied_by_flag() -> None:
    assert load({"tls_certificate": ""}, {"GEARTRAIN_TLS_CERTIFICATE": "x.pem"}).tls_certificate == ""


def test_several_listen_flags() -> None:
    settings = load({"listen": ["gearman://127.0.0.1:1", "gearman://127.0.0.1:2"]})
    assert [address.port for address in settings.listen] == [1, 2]


def test_empty_and_foreign_variables_do_not_count() -> None:
    assert load({}, {"GEARTRAIN_BACKLOG": "", "GEARTRAIN_PORT": "tcp://10.0.0.1:80"}) == Settings()


def test_default_file_of_the_user_is_read(tmp_path: Path) -> None:
    (tmp_path / "geartrain").mkdir()
    write(tmp_path / "geartrain", "backlog = 11\n")
    assert sources.load({}, {"XDG_CONFIG_HOME": str(tmp_path)}).backlog == 11


def test_default_files_in_order() -> None:
    assert [str(path) for path in sources.default_files({"HOME": "/home/ann"})] == [
        "/home/ann/.config/geartrain/geartrain.toml",
        "/etc/geartrain/geartrain.toml",
    ]


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, (_, texts) in BAD.items() for text in texts])
def test_invalid_value_is_refused_with_its_source_and_what_is_allowed(name: str, text: str, tmp_path: Path) -> None:
    allowed, setting = BAD[name][0], TABLE[name]
    places = {
        f"{setting.flag} {text}": ({name: text}, {}),
        f"{setting.variable}={text}": ({}, {setting.variable: text}),
    }
    if "'" not in text:
        path = write(tmp_path, f"{name} = '{text}'\n")
        places[f'{path}: {name} = "{text}"'] = ({"config": path}, {})
    for place, (flags, environment) in places.items():
        with pytest.raises(SettingsError) as caught:
            load(flags, environment)
        assert str(caught.value) == f"{place}: {allowed}"


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("backlog", "true", "true"),
        ("max_packet", "[1]", "[1]"),
        ("max_packet", "true", "true"),
        ("log_level", "3", "3"),
        ("linger", "nan", "nan"),
        ("handle_prefix", "7", "7"),
        ("pid_file", "7", "7"),
        ("keepalive_idle", "1.5", "1.5"),
    ],
)
def test_wrong_toml_type(name: str, value: str, shown: str, tmp_path: Path) -> None:
    path = write(tmp_path, f"{name} = {value}\n")
    with pytest.raises(SettingsError) as caught:
        load({"config": path})
    assert str(caught.value) == f"{path}: {name} = {shown}: must be {TABLE[name].value_type.allowed}"


@pytest.mark.parametrize("name", ["listen", "periodic_quiet"])
@pytest.mark.parametrize("url", ["nope://x", "127.0.0.1:4730", "gearman://", "gearman://h:99999"])
def test_invalid_url_is_explained(url: str, name: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load({name: [url]})
    source, _, error = str(caught.value).partition(f" {url}: ")
    assert source == TABLE[name].flag
    assert repr(url) in error


def test_listen_of_the_wrong_type(tmp_path: Path) -> None:
    path = write(tmp_path, "listen = [4730]\n")
    with pytest.raises(SettingsError, match="must be a list of URLs such as gearman://"):
        load({"config": path})


def test_misspelt_key_is_refused_with_the_nearest(tmp_path: Path) -> None:
    path = write(tmp_path, "max_atempts = 3\n")
    with pytest.raises(SettingsError) as caught:
        load({"config": path})
    assert str(caught.value) == f"{path}: unknown setting 'max_atempts'; did you mean 'max_attempts'?"


def test_unknown_key_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "[zzz]\nx = 1\n")
    with pytest.raises(SettingsError, match="unknown setting 'zzz'; `geartrain serve --help` lists all settings"):
        load({"config": path})


def test_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"cannot read the settings file .*/absent\.toml: No such file"):
        load({"config": str(tmp_path / "absent.toml")})


@pytest.mark.parametrize("content", [b"backlog = \n", b"backlog: 3\n", b"\xff\xfe"])
def test_file_that_is_not_toml(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "geartrain.toml"
    path.write_bytes(content)
    with pytest.raises(SettingsError, match=r"settings file .* is not valid TOML"):
        load({"config": str(path)})


def test_quiet_address_must_be_a_listen_address() -> None:
    address = Address("periodic", "127.0.0.1", 5000, "")
    assert load({"periodic_quiet": [str(address)], "listen": [str(address)]}).periodic_quiet == (address,)
    assert load({"periodic_quiet": [str(address)]}).periodic_quiet == (address,)
    with pytest.raises(SettingsError, match=r"periodic_quiet has .*, which is not one of the listen addresses"):
        load({"periodic_quiet": [str(address)], "listen": ["periodic://127.0.0.1:5001"]})


def test_combination_is_checked() -> None:
    with pytest.raises(SettingsError, match="tls_key is set without tls_certificate"):
        load({"tls_key": "key.pem"})


def test_listening_addresses_as_tables(tmp_path: Path) -> None:
    """In the settings file an address can be a table, with what its URL would say."""
    text = (
        'listen = ["gearman://127.0.0.1:1?may=read",\n'
        '  { url = "gearmans://127.0.0.1:2", may = ["submit:mail.*", "work"], certificate = "/a b&c.pem" },\n'
        '  { url = "danga://127.0.0.1:3" }]\n'
    )
    urls = (
        "gearman://127.0.0.1:1?may=read",
        "gearmans://127.0.0.1:2?may=submit:mail.*+work&certificate=/a%20b%26c.pem",
        "danga://127.0.0.1:3",
    )
    assert load({"config": write(tmp_path, text)}).listen == tuple(map(address.parse, urls))


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        ('{ may = "read" }', "must be a list of URLs"),
        ("5", "must be a list of URLs"),
        ('{ url = "gearman://127.0.0.1", might = "read" }', "unknown parameter 'might'"),
        ('{ url = "gearman://127.0.0.1?may=work", may = "read" }', "write `may=` once"),
    ],
)
def test_wrong_tables_of_addresses(tmp_path: Path, entry: str, complaint: str) -> None:
    with pytest.raises(SettingsError, match=complaint):
        load({"config": write(tmp_path, f"listen = [{entry}]\n")})
