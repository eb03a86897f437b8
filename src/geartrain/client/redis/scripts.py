"""The script of GearMonkey's document, and the scripts of leased workers.

The document's script must not change by a byte: other programs call it by its hash. Ours use Redis' clock, so the
clocks of the workers may differ. Redis executes each script as a whole or not at all.

A member of the sorted set of taken jobs is `{PRIO} {ID} {worker}`, its score the time at which the lease expires. A
member without a worker marks a job that was seen in a list of popped jobs, where a job normally stays for a moment.
"""

import hashlib
from typing import Final, NamedTuple


class Script(NamedTuple):
    """A script and its hash, by which Redis knows it."""

    text: str
    sha1: str


def script(text: str) -> Script:
    """A script with its hash."""
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


_DUE_TEXT: Final = (
    "local item = redis.call('ZRANGEBYSCORE', KEYS[1], 0, ARGV[1], 'LIMIT', 0, 1); if (#item > 0) then "
    "redis.call('ZREM', KEYS[1], item[1]); return { KEYS[1],  item[1] }; end"
)
# Takes a job that is due: KEYS queue:{FN}:scheduled, ARGV the time.
DUE: Final = Script(_DUE_TEXT, "5231827cd49b540660ef44969b38cc858f157824")

NOW: Final = """
local t = redis.call('TIME')
local now = t[1] + t[2] / 1000000
"""

# Writes down how a job ended, as in the document.
END_JOB: Final = """
local function end_job(job, channel, lock, id, status, output, hash_seconds, lock_seconds)
  redis.call('HMSET', job, 'status', status, 'output', output)
  redis.call('EXPIRE', job, hash_seconds)
  redis.call('PUBLISH', channel, 'finish:' .. id)
  redis.call('LPUSH', lock, 'OK')
  redis.call('EXPIRE', lock, lock_seconds)
  return 1
end
"""

# KEYS workers, count; ARGV worker, lease. A worker that is registered already is not counted again.
REGISTER: Final = script(
    NOW
    + """
local new = redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
if new == 1 then redis.call('INCR', KEYS[2]) end
return new
"""
)

# KEYS workers, count; ARGV worker.
UNREGISTER: Final = script(
    """
local known = redis.call('ZREM', KEYS[1], ARGV[1])
if known == 1 then redis.call('DECR', KEYS[2]) end
return known
"""
)

# KEYS for each function taken, queue:{FN}:scheduled, :high, :normal, :low, popped high, normal, low;
# ARGV worker, lease, the time, the number of functions, their names, then for each job that ended the wait of this
# worker the number of its list of popped jobs and its id.
# The jobs that ended the wait go back to their places. Then the next job is popped, recorded as taken and started as in
# the document, in one step: a job is always recorded somewhere, a second worker finds nothing to take, and the jobs
# that go back do not end the wait of another worker, which would put them back as well.
# Returns the function's number, the priority, the id and the input; no input if the hash is gone or finished.
TAKE: Final = script(
    NOW
    + """
local count = tonumber(ARGV[4])
local names = {'high', 'normal', 'low'}
for i = 5 + count, #ARGV, 2 do
  local place, id = tonumber(ARGV[i]), ARGV[i + 1]
  local home = place - (place - 1) % 8
  if redis.call('LREM', KEYS[place], 1, id) == 1 then redis.call('RPUSH', KEYS[place - 3], id) end
  redis.call('ZREM', KEYS[home], names[place - home - 4] .. ' ' .. id .. ' ')
end
local function found(number, priority, id)
  local key = 'job:' .. ARGV[4 + number] .. ':' .. id
  local job = redis.pcall('HMGET', key, 'status', 'input')
  if (job[1] ~= 'idle' and job[1] ~= 'busy') or not string.match(id, '^%d+$') then return {number, priority, id} end
  redis.call('ZADD', KEYS[8 * number - 7], now + ARGV[2], priority .. ' ' .. id .. ' ' .. ARGV[1])
  redis.call('PUBLISH', 'channel:' .. ARGV[4 + number], 'start:' .. id)
  redis.call('HMSET', key, 'status', 'busy')
  return {number, priority, id, job[2] or ''}
end
for number = 1, count do
  local queue = KEYS[8 * number - 6]
  local due = redis.call('ZRANGEBYSCORE', queue, 0, ARGV[3], 'LIMIT', 0, 1)
  if due[1] then
    redis.call('ZREM', queue, due[1])
    return found(number, 'scheduled', due[1])
  end
end
for place, priority in ipairs(names) do
  for number = 1, count do
    local id = redis.call('RPOP', KEYS[8 * number - 6 + place])
    if id then return found(number, priority, id) end
  end
end
return false
"""
)

# KEYS taken, popped, queue; ARGV priority, id. Puts back a job that ended a wait.
PUT_BACK: Final = script(
    """
if redis.call('LREM', KEYS[2], 1, ARGV[2]) == 1 then redis.call('RPUSH', KEYS[3], ARGV[2]) end
return redis.call('ZREM', KEYS[1], ARGV[1] .. ' ' .. ARGV[2] .. ' ')
"""
)

# KEYS taken; ARGV entry, lease. Renews a lease; 0 if the job was given to another worker meanwhile.
HOLD: Final = script(
    NOW
    + """
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
return 1
"""
)

# KEYS taken, job, channel, lock; ARGV entry, id, status, output, seconds until the hash and the lock expire.
# Ends a job as in the document; returns 0 and does nothing if it was given to another worker meanwhile.
FINISH: Final = script(
    END_JOB
    + """
if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then return 0 end
return end_job(KEYS[2], KEYS[3], KEYS[4], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6])
"""
)

# Puts a job back to the end of its queue from which it is popped next, unless it has finished.
_PUT_BACK: Final = """
local function put_back(queue, priority, job, id)
  local status = redis.pcall('HGET', job, 'status')
  if status ~= 'idle' and status ~= 'busy' then return 0 end
  redis.call('HMSET', job, 'status', 'idle')
  if priority == 'scheduled' then redis.call('ZADD', queue, t[1], id) else redis.call('RPUSH', queue, id) end
  return 1
end
"""

# KEYS taken, queue, job; ARGV entry, priority, id. Gives back a job that this worker has taken.
GIVE_BACK: Final = script(
    NOW
    + _PUT_BACK
    + """
if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then return 0 end
return put_back(KEYS[2], ARGV[2], KEYS[3], ARGV[3])
"""
)

# KEYS taken, workers, count, queue:{FN}:scheduled, :high, :normal, :low, popped high, normal, low;
# ARGV function, lease.
# A popped job that was marked a lease ago and is still in its list has lost its worker. Such jobs, and taken jobs whose
# lease has expired, go back to their queues; workers whose lease has expired are subtracted from the count.
# Returns the numbers of jobs and workers.
RETURN_LOST: Final = script(
    NOW
    + _PUT_BACK
    + """
local queues = {scheduled = KEYS[4], high = KEYS[5], normal = KEYS[6], low = KEYS[7]}
local popped = {high = KEYS[8], normal = KEYS[9], low = KEYS[10]}
for priority, list in pairs(popped) do
  for _, id in ipairs(redis.call('LRANGE', list, -100, -1)) do
    redis.call('ZADD', KEYS[1], 'NX', now + ARGV[2], priority .. ' ' .. id .. ' ')
  end
end
local back = 0
for _, entry in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, 100)) do
  redis.call('ZREM', KEYS[1], entry)
  local priority, id, worker = string.match(entry, '^(%a+) (.*) (%x*)$')
  if worker ~= '' or redis.call('LREM', popped[priority], 1, id) == 1 then
    back = back + put_back(queues[priority], priority, 'job:' .. ARGV[1] .. ':' .. id, id)
  end
end
local gone = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)
for _, worker in ipairs(gone) do
  redis.call('ZREM', KEYS[2], worker)
  if (tonumber(redis.call('GET', KEYS[3])) or 0) > 0 then redis.call('DECR', KEYS[3]) end
end
return {back, #gone}
"""
)

# KEYS queue:{FN}:scheduled, :high, :normal, :low, job, channel, lock;
# ARGV id, output, seconds until the hash and the lock expire.
# Ends a waiting job with an error; 0 if it does not wait.
CANCEL: Final = script(
    END_JOB
    + """
local removed = redis.call('ZREM', KEYS[1], ARGV[1])
for place = 2, 4 do removed = removed + redis.call('LREM', KEYS[place], 0, ARGV[1]) end
if removed == 0 then return 0 end
return end_job(KEYS[5], KEYS[6], KEYS[7], ARGV[1], 'error', ARGV[2], ARGV[3], ARGV[4])
"""
)
