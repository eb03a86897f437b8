"""Which rights a command needs: one of some scopes, for the function of each key that it names.

Submitting and taking jobs are checked by the engine. Keys of jobs may be read by whoever may submit, run or read jobs
of that function, since clients learn the end of their jobs from them. Commands without a row are for everybody.
"""

from typing import TYPE_CHECKING, Final, NamedTuple

from geartrain.audit import REFUSED
from geartrain.doors.gearmonkey import keys
from geartrain.errors import WireError
from geartrain.rights import ADMIN, READ, SUBMIT, WORK

if TYPE_CHECKING:
    from geartrain.doors.gearmonkey.connection import GearmonkeyConnection


class Need(NamedTuple):
    """A row of the table."""

    scopes: tuple[str, ...]  # one of them
    keys: int  # which words of the command are keys


# Which words after the command's name are keys. Without keys, the scope is needed for all functions.
_NO_KEYS, _FIRST, _ALL, _ALL_BUT_LAST, _FIRST_OF_SCRIPT = range(5)
_PARTNERS: Final = (SUBMIT, WORK, READ)

NEEDS: Final[dict[bytes, Need]] = {
    **dict.fromkeys((b"GET", b"INCR", b"INCRBY", b"DECR", b"DECRBY", b"SET"), Need(_PARTNERS, _FIRST)),
    **dict.fromkeys((b"HMSET", b"HSET", b"HDEL"), Need((SUBMIT, WORK), _FIRST)),
    **dict.fromkeys(
        (b"HGET", b"HMGET", b"HGETALL", b"HEXISTS", b"HLEN", b"HKEYS", b"TYPE", b"TTL", b"PTTL"),
        Need(_PARTNERS, _FIRST),
    ),
    **dict.fromkeys((b"LPUSH", b"RPUSH", b"ZADD"), Need((SUBMIT, WORK), _FIRST)),  # workers push to locks
    **dict.fromkeys((b"LPOP", b"RPOP"), Need((WORK, SUBMIT), _FIRST)),  # clients pop from locks
    **dict.fromkeys((b"BLPOP", b"BRPOP"), Need((WORK, SUBMIT), _ALL_BUT_LAST)),
    **dict.fromkeys((b"EVAL", b"EVALSHA"), Need((WORK,), _FIRST_OF_SCRIPT)),
    **dict.fromkeys((b"LLEN", b"ZCARD", b"ZSCORE", b"EXISTS"), Need(_PARTNERS, _FIRST)),
    **dict.fromkeys((b"LRANGE", b"ZRANGE", b"ZRANGEBYSCORE"), Need((READ, WORK), _FIRST)),
    **dict.fromkeys((b"LREM", b"ZREM"), Need((ADMIN, WORK), _FIRST)),
    **dict.fromkeys((b"DEL", b"UNLINK"), Need((ADMIN,), _ALL)),
    **dict.fromkeys((b"EXPIRE", b"PEXPIRE", b"PERSIST"), Need((SUBMIT, WORK), _FIRST)),
    b"SUBSCRIBE": Need(_PARTNERS, _ALL),
    b"PSUBSCRIBE": Need((READ,), _NO_KEYS),
    b"PUBLISH": Need((SUBMIT, WORK), _FIRST),
}


def check(connection: "GearmonkeyConnection", arguments: list[bytes]) -> None:
    """Raise a WireError with Redis' code NOPERM unless the peer may run this command."""
    identity = connection.identity
    if identity is None:
        return
    name = arguments[0].upper()
    need = NEEDS.get(name)
    if need is None:
        return
    rights = identity.rights
    if need.keys == _NO_KEYS:
        allowed = any(rights.everywhere(scope) for scope in need.scopes)
    else:
        # Verbs of the control function, which is built in, ask for their own rights.
        builtin = connection.engine.builtin_workers if identity.control else {}
        functions = [name for raw in _keys(need, arguments) if (name := keys.parse(raw).function) not in builtin]
        allowed = all(any(rights.allow(scope, function) for scope in need.scopes) for function in functions)
    if not allowed:
        command = keys.text(name).lower()
        why = f"{identity.name} has no right {' or '.join(need.scopes)} for '{command}'"
        connection.audit(command, REFUSED, _keys(need, arguments), why)
        raise WireError("NOPERM", why, fatal=False)


def _keys(need: Need, arguments: list[bytes]) -> list[bytes]:
    if need.keys == _FIRST:
        return arguments[1:2]
    if need.keys == _FIRST_OF_SCRIPT:
        return arguments[3:4]
    return arguments[1:] if need.keys == _ALL else arguments[1:-1]
