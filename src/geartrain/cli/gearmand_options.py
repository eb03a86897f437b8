"""gearmand 1.1.20's command line as a table, and its rules as a parser.

The rules, as observed: long options take their argument after `=` or as the next word, short ones at once or as
the next word; switches may share a dash (`-dR`); nothing is abbreviated, nothing may be given twice, and there
are no positional arguments. A configuration file has the same options with white space between them.
"""

import enum
import shlex
import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from geartrain.errors import SettingsError


class Takes(enum.Enum):
    """What an option wants after its name."""

    NOTHING = ""
    TEXT = "text"
    NUMBER = "number"


class Option(NamedTuple):
    """A row: how gearmand writes the option, and what it does here."""

    group: str
    long: str
    short: str
    takes: Takes
    default: str
    help: str
    setting: str = ""  # the setting of ours that takes its value as it is
    idle: str = ""  # why it is accepted and does nothing
    hidden: bool = False


_NO, _TEXT, _NUMBER = Takes.NOTHING, Takes.TEXT, Takes.NUMBER
_GENERAL, _HTTP, _GEAR = "General options", "HTTP", "Gear"
_OTHER_STORE = "jobs are not kept there"
_NO_HTTP = "there is no HTTP protocol module"

OPTIONS = (
    Option(_GENERAL, "backlog", "b", _NUMBER, "1024", "How many new connections may wait to be accepted."),
    Option(_GENERAL, "daemon", "d", _NO, "", "Go into the background once the server is ready."),
    Option(_GENERAL, "exceptions", "", _NO, "", "Send exceptions to all clients.", "exceptions"),
    Option(_GENERAL, "file-descriptors", "f", _NUMBER, "", "How many files may be open. Unset: all allowed."),
    Option(_GENERAL, "help", "h", _NO, "", "Print this."),
    Option(_GENERAL, "job-retries", "j", _NUMBER, "0", "Set a job aside after this many lost workers; 0: never."),
    Option(
        _GENERAL,
        "job-handle-prefix",
        "",
        _TEXT,
        "",
        "What job handles begin with. Unset: H:<host>.",
        "handle_prefix",
    ),
    Option(
        _GENERAL,
        "hashtable-buckets",
        "",
        _NUMBER,
        "991",
        "Accepted; tables grow by themselves.",
        idle="tables grow by themselves",
    ),
    Option(_GENERAL, "keepalive", "", _NO, "", "Probe silent connections (always on).", "keepalive"),
    Option(_GENERAL, "keepalive-idle", "", _NUMBER, "60", "Seconds of silence before a probe; -1: the system's."),
    Option(_GENERAL, "keepalive-interval", "", _NUMBER, "15", "Seconds between probes; -1: the system's."),
    Option(_GENERAL, "keepalive-count", "", _NUMBER, "4", "Lost probes that end a connection; -1: the system's."),
    Option(_GENERAL, "log-file", "l", _TEXT, "/var/log/gearmand.log", "A file, or 'stderr', or 'none'."),
    Option(_GENERAL, "listen", "L", _TEXT, "", "The host or address to listen on. Unset: every one."),
    Option(_GENERAL, "pid-file", "P", _TEXT, "/var/gearmand.pid", "Write the process id to this file."),
    Option(_GENERAL, "protocol", "r", _TEXT, "", "Accepted for 'http', which is not there."),
    Option(_GENERAL, "round-robin", "R", _NO, "", "Let functions take turns (always so)."),
    Option(_GENERAL, "queue-type", "q", _TEXT, "builtin", "Where jobs are kept: builtin or libsqlite3."),
    Option(_GENERAL, "config-file", "", _TEXT, "/etc/gearmand.conf", "Read more options from it; also '@name'."),
    Option(_GENERAL, "syslog", "", _NO, "", "Log to the system log."),
    Option(_GENERAL, "coredump", "", _NO, "", "Leave a core file after a crash."),
    Option(_GENERAL, "threads", "t", _NUMBER, "4", "Accepted; one loop serves all connections."),
    Option(_GENERAL, "user", "u", _TEXT, "", "Become this user once the ports are open."),
    Option(
        _GENERAL,
        "verbose",
        "",
        _TEXT,
        "ERROR",
        "How much to log (FATAL, ALERT, CRITICAL, ERROR, WARNING, NOTICE, INFO, DEBUG).",
    ),
    Option(_GENERAL, "version", "V", _NO, "", "Print the version."),
    Option(_GENERAL, "worker-wakeup", "w", _NUMBER, "1", "How many sleeping workers a job wakes; 0: all."),
    Option(_GENERAL, "check-args", "", _NO, "", "Check the options, no more.", hidden=True),
    Option(_HTTP, "http-port", "", _TEXT, "8080", f"Accepted; {_NO_HTTP}.", idle=_NO_HTTP),
    Option(_GEAR, "port", "p", _TEXT, "4730", "The port to listen on (or GEARMAND_PORT)."),
    Option(_GEAR, "ssl", "", _NO, "", "Speak TLS, or do not start."),
    Option(_GEAR, "ssl-ca-file", "", _TEXT, "", "Admit only peers with a certificate of these authorities."),
    Option(_GEAR, "ssl-certificate", "", _TEXT, "", "The server's certificate."),
    Option(_GEAR, "ssl-key", "", _TEXT, "", "The certificate's private key."),
    Option("libmemcached", "libmemcached-servers", "", _TEXT, "", "Accepted, unused.", idle=_OTHER_STORE),
    Option("libmemcached", "libmemcached-prefix", "", _TEXT, "gear_", "Accepted, unused.", idle=_OTHER_STORE),
    Option("libsqlite3", "libsqlite3-db", "", _TEXT, "", "The database file of -q libsqlite3."),
    Option(
        "libsqlite3",
        "store-queue-on-shutdown",
        "",
        _NO,
        "",
        "Accepted; jobs are kept from the start.",
        idle="a store keeps jobs from the start, not only at the end",
    ),
    Option(
        "libsqlite3",
        "libsqlite3-table",
        "",
        _TEXT,
        "gearman_queue",
        "Accepted; the store has tables of its own.",
        idle="the store has tables of its own",
    ),
    Option("Postgres", "libpq-conninfo", "", _TEXT, "", "Accepted, unused.", idle=_OTHER_STORE),
    Option("Postgres", "libpq-table", "", _TEXT, "queue", "Accepted, unused.", idle=_OTHER_STORE),
    Option("redis", "redis-server", "", _TEXT, "", "Accepted, unused.", idle=_OTHER_STORE),
    Option("redis", "redis-port", "", _TEXT, "", "Accepted, unused.", idle=_OTHER_STORE),
    Option("redis", "redis-password", "", _TEXT, "", "Accepted, unused.", idle=_OTHER_STORE),
    Option("redis", "redis-prefix", "", _TEXT, "", "Accepted, unused.", idle=_OTHER_STORE),
    Option("MySQL", "mysql-host", "", _TEXT, "localhost", "Accepted, unused.", idle=_OTHER_STORE),
    Option("MySQL", "mysql-port", "", _NUMBER, "3306", "Accepted, unused.", idle=_OTHER_STORE),
    Option("MySQL", "mysql-user", "", _TEXT, "", "Accepted, unused.", idle=_OTHER_STORE),
    Option("MySQL", "mysql-password", "", _TEXT, "", "Accepted, unused.", idle=_OTHER_STORE),
    Option("MySQL", "mysql-db", "", _TEXT, "", "Accepted, unused.", idle=_OTHER_STORE),
    Option("MySQL", "mysql-table", "", _TEXT, "gearman_queue", "Accepted, unused.", idle=_OTHER_STORE),
)
BY_LONG = {option.long: option for option in OPTIONS}
BY_SHORT = {option.short: option for option in OPTIONS if option.short}

_HELP_COLUMN = 40
_HELP_WIDTH = 80


class Given(NamedTuple):
    """An option as it was written."""

    option: Option
    value: str  # empty for a switch


def parse(words: Sequence[str]) -> dict[str, str]:
    """What was given on a command line, by long name; a SettingsError in gearmand's own words if it is wrong."""
    values: dict[str, str] = {}
    for option, value in _read(words):
        if option.long in values:
            raise SettingsError(f"option '--{option.long}' cannot be specified more than once")
        if option.takes is Takes.NUMBER and not _is_number(value):
            raise SettingsError(f"the argument ('{value}') for option '--{option.long}' is invalid")
        values[option.long] = value
    return values


def parse_file(text: str) -> dict[str, str]:
    """What a configuration file gives. Words that are no options are passed over, as gearmand does.

    A line that begins with `#` is a comment; gearmand would read the options in it.
    """
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    try:
        words = shlex.split("\n".join(lines))
    except ValueError as error:
        raise SettingsError(f"the configuration file makes no sense: {error}") from None
    return parse(list(_without_strays(words)))


def help_text() -> str:
    """The table for people, laid out as gearmand's."""
    lines = []
    for group in dict.fromkeys(option.group for option in OPTIONS):
        lines += ["", f"{group}:"]
        for option in OPTIONS:
            if option.group == group and not option.hidden:
                lines += _help_lines(option)
    return "\n".join(lines).lstrip("\n")


def _read(words: Sequence[str]) -> Iterator[Given]:
    waiting = iter(range(len(words)))
    for position in waiting:
        word = words[position]
        following = words[position + 1] if position + 1 < len(words) else None
        if word == "--":
            if following is None:
                return
            raise SettingsError(f"unrecognised option '{following}'")
        *switches, last = _long(word) if word.startswith("--") else _short(word)
        yield from (Given(option, "") for option, _ in switches)
        option, value = last
        if option.takes is Takes.NOTHING:
            yield Given(option, "")
            continue
        if value is None:
            if following is None or _names_an_option(following):
                raise SettingsError(f"the required argument for option '--{option.long}' is missing")
            value = following
            next(waiting)
        yield Given(option, value)


_Found = list[tuple[Option, str | None]]


def _long(word: str) -> _Found:
    name, equals, value = word[2:].partition("=")
    option = BY_LONG.get(name)
    if option is None:
        raise SettingsError(f"unrecognised option '{word}'")
    if equals and option.takes is Takes.NOTHING:
        raise SettingsError(f"option '--{name}' does not take any arguments")
    if equals and not value:
        raise SettingsError(f"the argument for option '--{name}' should follow immediately after the equal sign")
    return [(option, value if equals else None)]


def _short(word: str) -> _Found:
    """One dash: any number of switches, the last of which may take the rest of the word."""
    found: _Found = []
    letters = word[1:] if word.startswith("-") else ""
    while letters:
        option = BY_SHORT.get(letters[0])
        if option is None:
            break
        if option.takes is not Takes.NOTHING:
            return [*found, (option, letters[1:] or None)]
        found.append((option, None))
        letters = letters[1:]
    if letters or not found:
        raise SettingsError(f"unrecognised option '{word}'")
    return found


def _names_an_option(word: str) -> bool:
    if word.startswith("--"):
        return word[2:].partition("=")[0] in BY_LONG
    return len(word) > 1 and word[0] == "-" and word[1] in BY_SHORT


def _is_number(value: str) -> bool:
    return value.removeprefix("-").removeprefix("+").isdecimal() and -(2**31) <= int(value) < 2**32


def _without_strays(words: Sequence[str]) -> Iterator[str]:
    wants = False
    for word in words:
        if wants or word.startswith("-"):
            yield word
        wants = not wants and _wants_more(word)


def _wants_more(word: str) -> bool:
    """Whether the next word is this one's argument."""
    if not word.startswith("-") or "=" in word:
        return False
    try:
        option, value = (_long(word) if word.startswith("--") else _short(word))[-1]
    except SettingsError:
        return False
    return option.takes is not Takes.NOTHING and value is None


def _help_lines(option: Option) -> Iterator[str]:
    name = f"-{option.short} [ --{option.long} ]" if option.short else f"--{option.long}"
    argument = "" if option.takes is Takes.NOTHING else " arg"
    default = f" (={option.default})" if option.default else ""
    head = f"  {name}{argument}{default}"
    body = textwrap.wrap(option.help, _HELP_WIDTH - _HELP_COLUMN)
    if len(head) >= _HELP_COLUMN:
        yield head
    else:
        yield f"{head:{_HELP_COLUMN}}{body.pop(0)}"
    yield from (" " * _HELP_COLUMN + line for line in body)
