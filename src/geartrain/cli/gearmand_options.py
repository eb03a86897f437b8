"""The options of gearmand 1.1.20 as a table, with a few of ours, and a parser for its syntax.

The syntax, as observed: long options take their argument after `=` or as the next word, short ones immediately or as
the next word. Switches may share a dash (`-dR`). Options are not abbreviated and not repeated, and there are no
positional arguments. A configuration file has the same options, separated by white space.
"""

import enum
import shlex
import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from geartrain.errors import SettingsError


class ArgumentType(enum.Enum):
    """What follows the name of an option."""

    NOTHING = ""
    TEXT = "text"
    NUMBER = "number"


class Option(NamedTuple):
    """An option of gearmand, and what it does here."""

    group: str
    long: str
    short: str
    takes: ArgumentType
    default: str
    help: str
    setting: str = ""  # our setting with the same values
    no_effect: str = ""  # why it is accepted and does nothing
    hidden: bool = False


_NO, _TEXT, _NUMBER = ArgumentType.NOTHING, ArgumentType.TEXT, ArgumentType.NUMBER
_GENERAL, _HTTP, _GEAR, _OWN = "General options", "HTTP", "Gear", "Geartrain, not in gearmand"
_OTHER_STORE = "this queue type is not supported"

OPTIONS = (
    Option(_GENERAL, "backlog", "b", _NUMBER, "1024", "How many new connections may wait to be accepted."),
    Option(_GENERAL, "daemon", "d", _NO, "", "Run in the background once the server is ready."),
    Option(_GENERAL, "exceptions", "", _NO, "", "Send exceptions to all clients.", "exceptions"),
    Option(_GENERAL, "file-descriptors", "f", _NUMBER, "", "Limit of open files. Unset: as many as allowed."),
    Option(_GENERAL, "help", "h", _NO, "", "Print this help."),
    Option(_GENERAL, "job-retries", "j", _NUMBER, "0", "Give up a job after this many lost workers; 0 or -1: never."),
    Option(
        _GENERAL,
        "job-handle-prefix",
        "",
        _TEXT,
        "",
        "Prefix of job handles. Unset: H:<host>.",
        "handle_prefix",
    ),
    Option(
        _GENERAL,
        "hashtable-buckets",
        "",
        _NUMBER,
        "991",
        "Accepted; tables grow automatically.",
        no_effect="tables grow automatically",
    ),
    Option(_GENERAL, "keepalive", "", _NO, "", "Send keepalive probes (always on).", "keepalive"),
    Option(_GENERAL, "keepalive-idle", "", _NUMBER, "60", "Idle seconds before a probe; -1: the system's."),
    Option(_GENERAL, "keepalive-interval", "", _NUMBER, "15", "Seconds between probes; -1: the system's."),
    Option(_GENERAL, "keepalive-count", "", _NUMBER, "4", "Lost probes that close a connection; -1: the system's."),
    Option(_GENERAL, "log-file", "l", _TEXT, "/var/log/gearmand.log", "A file, 'stderr' or 'none'."),
    Option(_GENERAL, "listen", "L", _TEXT, "", "The address to listen on. Unset: all."),
    Option(_GENERAL, "pid-file", "P", _TEXT, "/var/gearmand.pid", "Write the process id to this file."),
    Option(_GENERAL, "protocol", "r", _TEXT, "", "Listen for another protocol too: http."),
    Option(_GENERAL, "round-robin", "R", _NO, "", "Serve functions in turn (always on)."),
    Option(_GENERAL, "queue-type", "q", _TEXT, "builtin", "Where jobs are stored: builtin or libsqlite3."),
    Option(_GENERAL, "config-file", "", _TEXT, "/etc/gearmand.conf", "Read more options from this file; also '@name'."),
    Option(_GENERAL, "syslog", "", _NO, "", "Log to the system log."),
    Option(_GENERAL, "coredump", "", _NO, "", "Write a core file after a crash."),
    Option(_GENERAL, "threads", "t", _NUMBER, "4", "Accepted; one event loop serves all connections."),
    Option(_GENERAL, "user", "u", _TEXT, "", "Switch to this user once the ports are open."),
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
    Option(_GENERAL, "check-args", "", _NO, "", "Check the options and exit.", hidden=True),
    Option(_HTTP, "http-port", "", _TEXT, "8080", "The port of the dashboard and of --protocol http."),
    Option(_GEAR, "port", "p", _TEXT, "4730", "The port to listen on (or GEARMAND_PORT)."),
    Option(_GEAR, "ssl", "", _NO, "", "Require TLS."),
    Option(_GEAR, "ssl-ca-file", "", _TEXT, "", "Accept only peers with a certificate from these authorities."),
    Option(_GEAR, "ssl-certificate", "", _TEXT, "", "The server's certificate."),
    Option(_GEAR, "ssl-key", "", _TEXT, "", "The certificate's private key."),
    Option("libmemcached", "libmemcached-servers", "", _TEXT, "", "Accepted, unused.", no_effect=_OTHER_STORE),
    Option("libmemcached", "libmemcached-prefix", "", _TEXT, "gear_", "Accepted, unused.", no_effect=_OTHER_STORE),
    Option("libsqlite3", "libsqlite3-db", "", _TEXT, "", "The database file of -q libsqlite3."),
    Option(
        "libsqlite3",
        "store-queue-on-shutdown",
        "",
        _NO,
        "",
        "Accepted; jobs are always stored at once.",
        no_effect="jobs are always stored at once",
    ),
    Option(
        "libsqlite3",
        "libsqlite3-table",
        "",
        _TEXT,
        "gearman_queue",
        "Accepted; the store has its own tables.",
        no_effect="the store has its own tables",
    ),
    Option("Postgres", "libpq-conninfo", "", _TEXT, "", "Accepted, unused.", no_effect=_OTHER_STORE),
    Option("Postgres", "libpq-table", "", _TEXT, "queue", "Accepted, unused.", no_effect=_OTHER_STORE),
    Option("redis", "redis-server", "", _TEXT, "", "Accepted, unused.", no_effect=_OTHER_STORE),
    Option("redis", "redis-port", "", _TEXT, "", "Accepted, unused.", no_effect=_OTHER_STORE),
    Option("redis", "redis-password", "", _TEXT, "", "Accepted, unused.", no_effect=_OTHER_STORE),
    Option("redis", "redis-prefix", "", _TEXT, "", "Accepted, unused.", no_effect=_OTHER_STORE),
    Option("MySQL", "mysql-host", "", _TEXT, "localhost", "Accepted, unused.", no_effect=_OTHER_STORE),
    Option("MySQL", "mysql-port", "", _NUMBER, "3306", "Accepted, unused.", no_effect=_OTHER_STORE),
    Option("MySQL", "mysql-user", "", _TEXT, "", "Accepted, unused.", no_effect=_OTHER_STORE),
    Option("MySQL", "mysql-password", "", _TEXT, "", "Accepted, unused.", no_effect=_OTHER_STORE),
    Option("MySQL", "mysql-db", "", _TEXT, "", "Accepted, unused.", no_effect=_OTHER_STORE),
    Option("MySQL", "mysql-table", "", _TEXT, "gearman_queue", "Accepted, unused.", no_effect=_OTHER_STORE),
    Option(_OWN, "max-packet", "", _TEXT, "4095MiB", "Refuse packets that are larger than this.", "max_packet"),
    Option(
        _OWN,
        "job-timeout-action",
        "",
        _TEXT,
        "requeue",
        "What to do with a job that exceeds its worker's timeout: requeue, as gearmand, or fail.",
        "job_timeout_action",
    ),
)
BY_LONG = {option.long: option for option in OPTIONS}
BY_SHORT = {option.short: option for option in OPTIONS if option.short}

_HELP_COLUMN = 40
_HELP_WIDTH = 80


class ParsedOption(NamedTuple):
    """An option and its value."""

    option: Option
    value: str  # empty for a switch


def parse(words: Sequence[str]) -> dict[str, str]:
    """Values by long name; wrong usage is a SettingsError with gearmand's own message."""
    values: dict[str, str] = {}
    for option, value in _read(words):
        if option.long in values:
            raise SettingsError(f"option '--{option.long}' cannot be specified more than once")
        if option.takes is ArgumentType.NUMBER and not _is_number(value):
            raise SettingsError(f"the argument ('{value}') for option '--{option.long}' is invalid")
        values[option.long] = value
    return values


def parse_file(text: str) -> dict[str, str]:
    """Values in a configuration file. Words that are not options are skipped, as gearmand does.

    A line that begins with `#` is a comment; gearmand would read the options in it.
    """
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    try:
        words = shlex.split("\n".join(lines))
    except ValueError as error:
        raise SettingsError(f"invalid configuration file: {error}") from None
    return parse(list(_options_only(words)))


def help_text() -> str:
    """The text of --help, in gearmand's layout."""
    lines = []
    for group in dict.fromkeys(option.group for option in OPTIONS):
        lines += ["", f"{group}:"]
        for option in OPTIONS:
            if option.group == group and not option.hidden:
                lines += _help_lines(option)
    return "\n".join(lines).lstrip("\n")


def _read(words: Sequence[str]) -> Iterator[ParsedOption]:
    positions = iter(range(len(words)))
    for position in positions:
        word = words[position]
        following = words[position + 1] if position + 1 < len(words) else None
        if word == "--":
            if following is None:
                return
            raise SettingsError(f"unrecognised option '{following}'")
        *switches, last = _long(word) if word.startswith("--") else _short(word)
        yield from (ParsedOption(option, "") for option, _ in switches)
        option, value = last
        if option.takes is ArgumentType.NOTHING:
            yield ParsedOption(option, "")
            continue
        if value is None:
            if following is None or _names_an_option(following):
                raise SettingsError(f"the required argument for option '--{option.long}' is missing")
            value = following
            next(positions)
        yield ParsedOption(option, value)


_Parsed = list[tuple[Option, str | None]]


def _long(word: str) -> _Parsed:
    name, equals, value = word[2:].partition("=")
    option = BY_LONG.get(name)
    if option is None:
        raise SettingsError(f"unrecognised option '{word}'")
    if equals and option.takes is ArgumentType.NOTHING:
        raise SettingsError(f"option '--{name}' does not take any arguments")
    if equals and not value:
        raise SettingsError(f"the argument for option '--{name}' should follow immediately after the equal sign")
    return [(option, value if equals else None)]


def _short(word: str) -> _Parsed:
    """Switches behind one dash; the last may take the rest of the word as its argument."""
    parsed: _Parsed = []
    letters = word[1:] if word.startswith("-") else ""
    while letters:
        option = BY_SHORT.get(letters[0])
        if option is None:
            break
        if option.takes is not ArgumentType.NOTHING:
            return [*parsed, (option, letters[1:] or None)]
        parsed.append((option, None))
        letters = letters[1:]
    if letters or not parsed:
        raise SettingsError(f"unrecognised option '{word}'")
    return parsed


def _names_an_option(word: str) -> bool:
    if word.startswith("--"):
        return word[2:].partition("=")[0] in BY_LONG
    return len(word) > 1 and word[0] == "-" and word[1] in BY_SHORT


def _is_number(value: str) -> bool:
    return value.removeprefix("-").removeprefix("+").isdecimal() and -(2**31) <= int(value) < 2**32


def _options_only(words: Sequence[str]) -> Iterator[str]:
    argument_follows = False
    for word in words:
        if argument_follows or word.startswith("-"):
            yield word
        argument_follows = not argument_follows and _takes_next_word(word)


def _takes_next_word(word: str) -> bool:
    """Whether the next word is this one's argument."""
    if not word.startswith("-") or "=" in word:
        return False
    try:
        option, value = (_long(word) if word.startswith("--") else _short(word))[-1]
    except SettingsError:
        return False
    return option.takes is not ArgumentType.NOTHING and value is None


def _help_lines(option: Option) -> Iterator[str]:
    name = f"-{option.short} [ --{option.long} ]" if option.short else f"--{option.long}"
    argument = "" if option.takes is ArgumentType.NOTHING else " arg"
    default = f" (={option.default})" if option.default else ""
    head = f"  {name}{argument}{default}"
    body = textwrap.wrap(option.help, _HELP_WIDTH - _HELP_COLUMN)
    if len(head) >= _HELP_COLUMN:
        yield head
    else:
        yield f"{head:{_HELP_COLUMN}}{body.pop(0)}"
    yield from (" " * _HELP_COLUMN + line for line in body)
