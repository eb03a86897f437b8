"""The document's script, and those with which our workers look after each other.

The document's must stay as it is to the byte: it is known by its hash. Ours use Redis' own clock, so that it does not
matter how far the clocks of the workers are apart.
"""

import hashlib
from typing import Final, NamedTuple


class Script(NamedTuple):
    """A script and what Redis calls it."""

    text: str
    sha1: str


def _script(text: str) -> Script:
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


_DUE_TEXT: Final = (
    "local item = redis.call('ZRANGEBYSCORE', KEYS[1], 0, ARGV[1], 'LIMIT', 0, 1); if (#item > 0) then "
    "redis.call('ZREM', KEYS[1], item[1]); return { KEYS[1],  item[1] }; end"
)
# Takes a job whose time has come: KEYS queue:{FN}:scheduled, ARGV the time.
DUE: Final = Script(_DUE_TEXT, "5231827cd49b540660ef44969b38cc858f157824")

_NOW: Final = "local t = redis.call('TIME'); local now = t[1] + t[2] / 1000000; "

# KEYS workers, count; ARGV worker, lease. A worker that is known already is not counted again.
REGISTER: Final = _script(
    _NOW + "local new = redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1]); "
    "if new == 1 then redis.call('INCR', KEYS[2]); end return new"
)

# KEYS workers, count; ARGV worker.
UNREGISTER: Final = _script(
    "local known = redis.call('ZREM', KEYS[1], ARGV[1]); "
    "if known == 1 then redis.call('DECR', KEYS[2]); end return known"
)

# KEYS taken; ARGV entry, lease. A job was popped.
TAKE: Final = _script(_NOW + "return redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])")

# KEYS taken; ARGV entry, lease. Still at it; 0 if the job was given to another meanwhile.
HOLD: Final = _script(
    _NOW + "if redis.call('ZSCORE', KEYS[1], ARGV[1]) then "
    "redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1]); return 1; end return 0"
)

# KEYS taken, workers, count, queue:{FN}:scheduled, :high, :normal, :low; ARGV function.
# Jobs whose workers were not heard of go back to the end of their queue from which they are popped next, and
# those workers are no longer counted. Returns how many jobs and how many workers.
RETURN_LOST: Final = _script(
    _NOW + "local back = 0; "
    "local queues = {scheduled = KEYS[4], high = KEYS[5], normal = KEYS[6], low = KEYS[7]}; "
    "for _, entry in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, 100)) do "
    "redis.call('ZREM', KEYS[1], entry); "
    "local prio, id = string.match(entry, '^(%a+) (%d+) '); "
    "local job = 'job:' .. ARGV[1] .. ':' .. id; "
    "local status = redis.call('HGET', job, 'status'); "
    "if status == 'idle' or status == 'busy' then "
    "redis.call('HMSET', job, 'status', 'idle'); "
    "if prio == 'scheduled' then redis.call('ZADD', KEYS[4], t[1], id); "
    "else redis.call('RPUSH', queues[prio], id); end "
    "back = back + 1; end end "
    "local gone = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now); "
    "for _, worker in ipairs(gone) do redis.call('ZREM', KEYS[2], worker); "
    "if tonumber(redis.call('GET', KEYS[3]) or '0') > 0 then redis.call('DECR', KEYS[3]); end end "
    "return {back, #gone}"
)
