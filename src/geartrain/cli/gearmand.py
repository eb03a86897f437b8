"""`geartrain gearmand`: run the server with gearmand's options.

An option does what it does in gearmand, or a warning on stderr says what is different. An option whose absence would
lose jobs or expose data (a queue type that is not supported, TLS without a certificate) is an error.
"""

import dataclasses
import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import geartrain
from geartrain.address import Address
from geartrain.cli import gearmand_options as options
from geartrain.errors import GeartrainError, SettingsError
from geartrain.model import Expiry
from geartrain.server.config import load
from geartrain.server.config.settings import Settings
from geartrain.server.process import launch, log
from geartrain.server.process.launch import ProcessOptions

COMPATIBLE = "1.1.20"
EVERY_INTERFACE = "*"
# What gearmand does where `geartrain serve` does something else; flags, the environment and a settings file change it.
DEFAULTS = {
    "job_timeout_action": Expiry.REQUEUE.value,
    "trust_network": "true",
    # The size of a packet is a number of 32 bits. Some are left for the handle that a job's payload is sent with.
    "max_packet": "4095MiB",
}
THREADS_IGNORED = {"--threads": "one event loop serves all connections"}

Values = Mapping[str, str]  # values of the given options, by long name
Flags = dict[str, Any]  # settings of ours


def run(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    """Run the server. The exit code is 0, or 1 after one line on stderr, as with gearmand."""
    environment = os.environ if environment is None else environment
    try:
        return _run(arguments, environment)
    except GeartrainError as error:
        print(f"gearmand: {error}", file=sys.stderr)
        return 1


def _run(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    values = read_options(arguments)
    if "help" in values:
        print(f"Usage: geartrain gearmand [options]\n\n{options.help_text()}")
        return 0
    if "version" in values:
        print(f"\ngearmand {COMPATIBLE} compatible, geartrain {geartrain.__version__} - geartrain --help")
        return 0
    flags, warnings = translate(values, environment)
    settings = load_settings(flags, values, environment)
    for warning in warnings:
        print(f"gearmand: warning: {warning}", file=sys.stderr)
    if "check-args" not in values:
        launch.serve(settings, process(values), THREADS_IGNORED if "threads" in values else {})
    return 0


def read_options(arguments: Sequence[str]) -> Values:
    """The options of the command line, and where they are missing those of the configuration file (also `@name`)."""
    words = [f"--config-file={word[1:]}" if word[:1] == "@" and len(word) > 1 else word for word in arguments]
    values = options.parse(words)
    default = options.BY_LONG["config-file"].default
    path = values.get("config-file", default)
    if "config-file" not in values and not os.path.exists(default):
        return values
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read()
    except OSError as error:
        raise SettingsError(f"could not open the configuration file {path}: {error.strerror}") from None
    return {**options.parse_file(text), **values}


def process(values: Values) -> ProcessOptions:
    """The options that concern the process."""
    return ProcessOptions(
        daemon="daemon" in values,
        user=values.get("user", ""),
        file_limit=max(0, int(values.get("file-descriptors", "0"))),
        core="coredump" in values,
    )


def translate(values: Values, environment: Mapping[str, str]) -> tuple[Flags, list[str]]:
    """Our settings for gearmand's options, and warnings about differences."""
    flags: Flags = {"max_attempts": "0"}
    for option in options.OPTIONS:
        if option.setting and option.long in values:
            is_switch = option.takes is options.ArgumentType.NOTHING
            flags[option.setting] = True if is_switch else values[option.long]
    warnings = [
        f"--{name} has no effect: {options.BY_LONG[name].no_effect}"
        for name in values
        if options.BY_LONG[name].no_effect
    ]
    for name, translator in _NUMBERS.items():
        if name in values:
            flags.update(translator(int(values[name])))
    own = _address(values, environment)
    flags["listen"] = [str(own)]
    flags.update(_http(values, flags["listen"]))
    flags["listen"] += _further_addresses(own, flags["listen"], environment)
    flags["store"] = _store(values)
    flags["log_level"] = _level(values)
    flags["log_file"] = _log_file(values, warnings)
    flags["pid_file"] = _pid_file(values, warnings)
    flags.update(_tls(values, environment, warnings))
    return flags, warnings


def load_settings(flags: Flags, values: Values, environment: Mapping[str, str]) -> Settings:
    """The settings, with gearmand's defaults and the meaning of `--job-retries 0` that they choose."""
    settings = load.load(flags, environment, DEFAULTS)
    if settings.job_retries_zero == "none" and int(values.get("job-retries", "-1")) == 0:
        return dataclasses.replace(settings, max_attempts=1)
    return settings


def _system_default(setting: str) -> Callable[[int], Flags]:
    """Numbers that the system would refuse leave its default, as with gearmand."""
    return lambda number: {setting: str(number if number > 0 else -1)}


# Later versions of gearmand use negative numbers for "no limit".
_NUMBERS: Mapping[str, Callable[[int], Flags]] = {
    "backlog": lambda number: {"backlog": str(number)} if number > 0 else {},
    "job-retries": lambda number: {"max_attempts": str(max(number, 0))},
    "worker-wakeup": lambda number: {"wake_count": str(max(number, 0))},
    "keepalive-idle": _system_default("keepalive_idle"),
    "keepalive-interval": _system_default("keepalive_interval"),
    "keepalive-count": _system_default("keepalive_count"),
}


def _address(values: Values, environment: Mapping[str, str]) -> Address:
    port = values.get("port") or environment.get("GEARMAND_PORT") or options.BY_LONG["port"].default
    return Address("gearman", values.get("listen") or EVERY_INTERFACE, _port(port), "", tls="ssl" in values)


def _port(text: str) -> int:
    """A number or the name of a service: gearmand passes it to the system's resolver."""
    if text.isdecimal() and int(text) < 65536:
        return int(text)
    try:
        return socket.getservbyname(text, "tcp")
    except OSError:
        raise SettingsError(f"unknown port {text!r}") from None


def _store(values: Values) -> str:
    queue = values.get("queue-type", "builtin")
    if queue.lower() == "builtin":
        return "memory"
    if queue.lower() != "libsqlite3":
        raise SettingsError(f"queue type {queue!r} is not supported; refusing to start, since jobs would not be stored")
    if "libsqlite3-db" not in values:
        raise SettingsError("--queue-type libsqlite3 needs --libsqlite3-db")
    return f"sqlite://{os.path.abspath(values['libsqlite3-db'])}"


def _level(values: Values) -> str:
    word = values.get("verbose", options.BY_LONG["verbose"].default)
    if word.lower() not in log.LEVELS or not word.isupper():
        raise SettingsError(f"Invalid value for --verbose supplied: {word!r}")
    return word.lower()


def _log_file(values: Values, warnings: list[str]) -> str:
    """The log file; stderr if it cannot be opened, as with gearmand."""
    path = values.get("log-file", options.BY_LONG["log-file"].default)
    if "syslog" in values:
        if "log-file" in values:
            warnings.append("--log-file has no effect with --syslog")
        if os.path.exists(log.SYSLOG_SOCKET):
            return log.SYSLOG
        warnings.append(f"no system log at {log.SYSLOG_SOCKET}; logging to stderr")
        return log.STDERR
    if path in (log.STDERR, log.NONE):
        return path
    try:
        os.close(log.open_file(path))
    except OSError as error:
        warnings.append(f"could not open the log file {path} ({error.strerror}); logging to stderr")
        return log.STDERR
    return os.path.abspath(path)


def _pid_file(values: Values, warnings: list[str]) -> str:
    """The pid file. A named file is required; the default one is skipped if it cannot be written."""
    if "pid-file" in values:
        return values["pid-file"]
    default = options.BY_LONG["pid-file"].default
    if os.access(default if os.path.exists(default) else os.path.dirname(default), os.W_OK):
        return default
    warnings.append(f"could not write the pid file {default}; continuing without one")
    return ""


def _tls(values: Values, environment: Mapping[str, str], warnings: list[str]) -> Flags:
    if "ssl" not in values:
        warnings += [f"--{name} has no effect without --ssl" for name in values if name.startswith("ssl-")]
        return {"tls_certificate": "", "tls_key": "", "tls_ca": ""}
    flags = {
        setting: values.get(name) or environment.get(variable) or ""
        for setting, name, variable in (
            ("tls_certificate", "ssl-certificate", "GEARMAND_SERVER_PEM"),
            ("tls_key", "ssl-key", "GEARMAND_SERVER_KEY"),
            ("tls_ca", "ssl-ca-file", "GEARMAND_CA_CERTIFICATE"),
        )
    }
    if not flags["tls_certificate"]:
        raise SettingsError("--ssl needs --ssl-certificate and --ssl-key; refusing to serve without TLS")
    return flags


def _http(values: Values, listen: list[str]) -> Flags:
    """Add the address of the dashboard, the API and the metrics; gearmand's HTTP protocol shares it if asked for."""
    name = values.get("protocol")
    if name not in (None, "http"):
        raise SettingsError(f"unknown protocol module: {name}")
    if name is not None or "http-port" in values:
        port = values.get("http-port", options.BY_LONG["http-port"].default)
        listen.append(str(Address("http", values.get("listen") or EVERY_INTERFACE, _port(port), "")))
    return {"gearmand_http": True} if name is not None else {}


def _further_addresses(own: Address, listen: list[str], environment: Mapping[str, str]) -> list[str]:
    """The addresses of our own settings that the options do not have already."""
    return [
        str(address)
        for address in load.listen_addresses(environment)
        if str(address) not in listen and (address.scheme, address.port) != (own.scheme, own.port)
    ]
