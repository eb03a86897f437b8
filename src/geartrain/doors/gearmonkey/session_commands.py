"""Commands about the connection itself, and those that client libraries send first."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from geartrain.doors.gearmonkey import channel_commands, detached_workers, keys, transaction
from geartrain.errors import ForbiddenError, LimitError, WireError
from geartrain.rights import READ
from geartrain.wire import resp

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection

# The version of Redis that these commands follow; client libraries adapt to it.
REDIS_VERSION: Final = "7.0.15"
_DATABASES: Final = 16
_MICROSECONDS: Final = 1_000_000
_UNBLOCKED: Final = WireError("UNBLOCKED", "client unblocked via CLIENT UNBLOCK", fatal=False)
_DEFAULT_USER: Final = b"default"  # which clients send that were given a password only
_WRONG_PASSWORD: Final = WireError("WRONGPASS", "invalid username-password pair or user is disabled.", fatal=False)
_NO_PASSWORD: Final = (
    "AUTH <password> called without any password configured for the default user. "
    "Are you sure your configuration is correct?"
)


def hello(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """HELLO: choose a version of the protocol."""
    version = connection.version
    if len(arguments) > 1:
        wanted = resp.number(arguments[1])
        if wanted is None:
            raise keys.refusal("Protocol version is not an integer or out of range")
        if wanted not in (2, 3):
            raise WireError("NOPROTO", "unsupported protocol version", fatal=False)
        version = wanted
    name = connection.name
    rest = arguments[2:]
    while rest:
        option = rest[0].upper()
        if option == b"AUTH" and len(rest) >= 3:
            _authenticate(connection, rest[1], rest[2])
            rest = rest[3:]
            continue
        if option != b"SETNAME" or len(rest) < 2:
            raise keys.refusal(f"Syntax error in HELLO option {keys.shown(rest[0])}")
        name, rest = _checked_name(rest[1]), rest[2:]
    connection.version = version
    connection.rename(name)
    return {
        b"server": b"redis",
        b"version": REDIS_VERSION.encode(),
        b"proto": version,
        b"id": connection.number,
        b"mode": b"standalone",
        b"role": b"master",
        b"modules": [],
    }


def auth(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """AUTH: prove an identity by a token, with or without the user's name before it."""
    user = arguments[1] if len(arguments) > 2 else b""
    _authenticate(connection, user, arguments[-1])
    return resp.OK


def _authenticate(connection: "GearmonkeyConnection", user: bytes, token: bytes) -> None:
    if not connection.door.access.has_tokens:
        raise keys.refusal(_NO_PASSWORD)
    name = "" if user in (b"", _DEFAULT_USER) else keys.text(user)
    try:
        connection.authenticate(token.decode("utf-8", "surrogateescape"), name)
    except ForbiddenError:
        raise _WRONG_PASSWORD from None
    except LimitError as error:
        raise keys.refusal(str(error)) from None


def ping(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """PING: in version 2 subscribers get the reply as a message."""
    if connection.is_subscriber and connection.version == 2:
        return [b"pong", arguments[1] if len(arguments) > 1 else b""]
    return arguments[1] if len(arguments) > 1 else resp.SimpleString(b"PONG")


def echo(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """ECHO."""
    return arguments[1]


def select(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """SELECT: every database is the same engine."""
    if not 0 <= keys.integer(arguments[1]) < _DATABASES:
        raise keys.refusal("DB index is out of range")
    return resp.OK


def quit_(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """QUIT."""
    connection.reply(resp.OK)
    connection.close()
    return connection.NO_REPLY


def reset(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """RESET: the state of a new connection; popped jobs stay with it."""
    transaction.abandon(connection)
    channel_commands.forget(connection)
    connection.grace = connection.gearmonkey.detached.grace
    connection.wants_input = False
    connection.version = 2
    connection.rename(b"")
    return resp.SimpleString(b"RESET")


def info(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """INFO: the version, and the number of clients and jobs."""
    engine = connection.engine
    lines = [
        "# Server",
        f"redis_version:{REDIS_VERSION}",
        "redis_mode:standalone",
        f"geartrain_version:{connection.gearmonkey.options.version}",
        "# Clients",
        f"connected_clients:{len(connection.door.connections)}",
        f"blocked_clients:{connection.gearmonkey.blocked_pops.count}",
        "# Persistence",
        "loading:0",
        "# Replication",
        "role:master",
        "# Keyspace",
        f"db0:keys={len(engine.jobs)},expires=0,avg_ttl=0",
        "",
    ]
    return resp.VerbatimText("\r\n".join(lines).encode())


def command(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """COMMAND: no details about commands; redis-cli and libraries do without."""
    if len(arguments) > 1 and arguments[1].upper() == b"COUNT":
        return connection.gearmonkey.command_count
    if len(arguments) > 1 and arguments[1].upper() == b"DOCS":
        return {}
    return []


def config(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """CONFIG GET: no values."""
    if arguments[1].upper() != b"GET":
        raise _unknown_subcommand(arguments)
    return {}


def time_(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """TIME."""
    seconds, rest = divmod(connection.engine.now, 1)
    return [b"%d" % seconds, b"%d" % int(rest * _MICROSECONDS)]


def client(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """CLIENT: name, id, list, unblock, and options of the connection."""
    handler = _CLIENT.get(arguments[1].upper())
    if handler is None:
        raise _unknown_subcommand(arguments)
    min_words, max_words, handle = handler
    if not min_words <= len(arguments) <= max_words:
        word = keys.text(arguments[1]).lower()
        raise keys.refusal(f"wrong number of arguments for 'client|{word}' command")
    return handle(connection, arguments)


def _set_name(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    connection.rename(_checked_name(arguments[2]))
    return resp.OK


def _get_name(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    return connection.name or None


def _id(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    return connection.number


def _noted(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    return resp.OK


def _client_list(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    connection.engine.require_everywhere(READ)
    now = time.monotonic()
    lines = [
        f"id={peer.number} addr={peer.peer} name={keys.text(peer.name)} age={int(now - peer.connected_at)}\n"
        for peer in connection.gearmonkey.peers()
    ]
    return resp.VerbatimText("".join(lines).encode())


def _unblock(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """CLIENT UNBLOCK: end the blocking pop of another connection; workers use it to stop."""
    if arguments[3:] and arguments[3].upper() not in (b"TIMEOUT", b"ERROR"):
        raise keys.refusal("CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
    number = keys.integer(arguments[2])
    own = connection.identity  # a peer with rights of its own unblocks its own connections only
    blocked = (peer for peer in connection.gearmonkey.peers() if peer.blocked_pop is not None)
    peer = next((peer for peer in blocked if peer.number == number and (own is None or peer.identity is own)), None)
    if peer is None:
        return 0
    by_error = arguments[3:] and arguments[3].upper() == b"ERROR"
    peer.answer_pop(_UNBLOCKED if by_error else resp.NULL_ARRAY)
    return 1


def _grace(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """CLIENT GRACE: how many seconds the jobs popped here stay with their worker when the connection has closed."""
    seconds = keys.integer(arguments[2])
    if not 0 <= seconds <= detached_workers.LONGEST_GRACE:
        raise keys.NOT_AN_INTEGER
    connection.grace = float(seconds)
    return resp.OK


def _input(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """CLIENT INPUT: whether a blocking pop of a queue also replies with the input of the job, unless it is large."""
    choice = arguments[2].upper()
    if choice not in (b"ON", b"OFF"):
        raise keys.SYNTAX
    connection.wants_input = choice == b"ON"
    return resp.OK


def _heartbeat(connection: "GearmonkeyConnection", arguments: list[bytes]) -> resp.Value:
    """CLIENT HEARTBEAT: the worker that pops here is alive; the answer is for how many seconds it may be silent."""
    return f"{connection.heartbeat():g}".encode()


Handler = Callable[["GearmonkeyConnection", list[bytes]], resp.Value]
_CLIENT: Final[dict[bytes, tuple[int, int, Handler]]] = {
    b"SETINFO": (4, 4, _noted),
    b"SETNAME": (3, 3, _set_name),
    b"GETNAME": (2, 2, _get_name),
    b"GRACE": (3, 3, _grace),
    b"HEARTBEAT": (2, 2, _heartbeat),
    b"ID": (2, 2, _id),
    b"INPUT": (3, 3, _input),
    b"LIST": (2, 8, _client_list),
    b"NO-EVICT": (3, 3, _noted),
    b"NO-TOUCH": (3, 3, _noted),
    b"UNBLOCK": (3, 4, _unblock),
}


def _checked_name(name: bytes) -> bytes:
    if any(not 33 <= byte <= 126 for byte in name) or len(name) > 256:
        raise keys.refusal("Client names cannot contain spaces, newlines or special characters.")
    return name


def _unknown_subcommand(arguments: list[bytes]) -> WireError:
    word, below = keys.text(arguments[0]).upper(), keys.text(arguments[1])
    return keys.refusal(f"unknown subcommand '{below}'. Try {word} HELP.")
