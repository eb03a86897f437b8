"""redis-py connections that are safe for jobs.

By its own defaults redis-py gives up on an answer after 5 seconds and sends the command again, up to ten times. A pop
that is sent again loses the job that the first one got, and a push that is sent again queues a job twice. So here
nothing is repeated by the library, and an answer may take longer than any pop of ours waits.
"""

from typing import Any, Final

from geartrain import address
from geartrain.client.redis import flow
from geartrain.errors import AddressError

try:
    import redis
    import redis.asyncio
    import redis.asyncio.retry
    import redis.backoff
    import redis.retry
except ImportError as missing:
    raise ImportError("GearMonkey needs redis-py: pip install geartrain[gearmonkey]") from missing

ANSWER_SECONDS: Final = 30.0  # longer than every pop
CONNECT_SECONDS: Final = 10.0
TRIES: Final = 4  # of a command that may be repeated
FIRST_PAUSE: Final = 0.05  # seconds, doubled with every try


def settings(url: str) -> dict[str, Any]:
    """What redis-py has to know."""
    place = address.parse(url)
    if place.scheme != "gearmonkey":
        raise AddressError(f"{url!r} is no GearMonkey address: gearmonkey://127.0.0.1:6379/0")
    database = place.path.removeprefix("/")
    if not (database or "0").isdigit():
        raise AddressError(f"{url!r}: a database is a number")
    return {
        "host": place.host,
        "port": place.port,
        "db": int(database or 0),
        "protocol": 2,  # every Redis speaks it
        "socket_timeout": ANSWER_SECONDS,
        "socket_connect_timeout": CONNECT_SECONDS,
        "socket_keepalive": True,
        "decode_responses": False,  # payloads are bytes
    }


def connect(url: str, single: bool) -> "redis.Redis":
    """A client of redis-py; `single` stays on one connection, which a Geartrain server knows a worker by."""
    never = redis.retry.Retry(redis.backoff.NoBackoff(), 0)
    return redis.Redis(**settings(url), retry=never, single_connection_client=single)


def connect_async(url: str, single: bool) -> "redis.asyncio.Redis":
    """The same for asyncio."""
    never = redis.asyncio.retry.Retry(redis.backoff.NoBackoff(), 0)
    return redis.asyncio.Redis(**settings(url), retry=never, single_connection_client=single)


CONNECTION_ERRORS: Final = (redis.ConnectionError, redis.TimeoutError, OSError)


def translated(error: Exception, command: flow.Request) -> Exception:
    """An error of redis-py in the words of a flow."""
    if isinstance(error, redis.exceptions.NoScriptError):
        return flow.NoScriptError()
    if isinstance(error, CONNECTION_ERRORS) and not command.repeatable:
        return flow.BrokenError(str(error))
    if isinstance(error, redis.ResponseError):
        return flow.RefusedError(str(error))
    return error
