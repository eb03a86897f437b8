"""What a bridge does in Redis, in addition to the scripts of leased workers; each is executed as a whole or not at all.

The jobs that a bridge has brought to Redis are in a sorted set of their function, so that none is taken back as if it
had been submitted there. A key for each origin (the job at the other server) has the number of its job here, so that a
job that is brought twice is one job.
"""

from typing import Final

from geartrain.client.redis.scripts import END_JOB, NOW, script

KEYS_PER_FUNCTION: Final = 7

# KEYS for each function queue:{FN}:scheduled, :high, :normal, :low, count, workers, brought; ARGV worker, the names.
# Returns for each function: workers without this one, jobs that wait, jobs among them that were brought. Jobs that were
# brought and have ended are removed from their set.
LOOK: Final = script(
    NOW
    + """
local answer = {}
for number = 1, #ARGV - 1 do
  local first = 7 * number - 6
  local waiting = redis.call('ZCOUNT', KEYS[first], 0, t[1])
  for place = 1, 3 do waiting = waiting + redis.call('LLEN', KEYS[first + place]) end
  local brought = 0
  for _, id in ipairs(redis.call('ZRANGE', KEYS[first + 6], 0, 999)) do
    local status = redis.pcall('HGET', 'job:' .. ARGV[number + 1] .. ':' .. id, 'status')
    if status == 'idle' then
      brought = brought + 1
    elseif status ~= 'busy' then
      redis.call('ZREM', KEYS[first + 6], id)
    end
  end
  local workers = tonumber(redis.call('GET', KEYS[first + 4])) or 0
  if redis.call('ZSCORE', KEYS[first + 5], ARGV[1]) then workers = workers - 1 end
  answer[number] = {workers, waiting, brought}
end
return answer
"""
)

# KEYS taken, queue:{FN}:scheduled, :high, :normal, :low, brought; ARGV function, worker, lease.
# Takes the next job as a leased worker does, but none that was brought. An id that is no job is removed.
# Returns the priority, the id and the input.
TAKE: Final = script(
    NOW
    + """
local function started(priority, id)
  local key = 'job:' .. ARGV[1] .. ':' .. id
  local job = redis.pcall('HMGET', key, 'status', 'input')
  if (job[1] ~= 'idle' and job[1] ~= 'busy') or not string.match(id, '^%d+$') then return false end
  redis.call('ZADD', KEYS[1], now + ARGV[3], priority .. ' ' .. id .. ' ' .. ARGV[2])
  redis.call('PUBLISH', 'channel:' .. ARGV[1], 'start:' .. id)
  redis.call('HMSET', key, 'status', 'busy')
  return {priority, id, job[2] or ''}
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], 0, t[1], 'LIMIT', 0, 100)) do
  redis.call('ZREM', KEYS[2], id)
  local job = started('scheduled', id)
  if job then return job end
end
local deepest = 100 + redis.call('ZCARD', KEYS[6])
for place, priority in ipairs({'high', 'normal', 'low'}) do
  local queue = KEYS[place + 2]
  local ids = redis.call('LRANGE', queue, -deepest, -1)
  for position = #ids, 1, -1 do
    local id = ids[position]
    if not redis.call('ZSCORE', KEYS[6], id) then
      redis.call('LREM', queue, -1, id)
      local job = started(priority, id)
      if job then return job end
    end
  end
end
return false
"""
)

# KEYS origin, uid, queue, brought, channel; ARGV function, input, milliseconds until the origin is forgotten.
# Submits a job as in the document, unless that of the same origin is there. Returns its number.
BRING: Final = script(
    NOW
    + """
local known = redis.call('GET', KEYS[1])
if known and redis.call('EXISTS', 'job:' .. ARGV[1] .. ':' .. known) == 1 then
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  return tonumber(known)
end
local id = redis.call('INCR', KEYS[2])
redis.call('HMSET', 'job:' .. ARGV[1] .. ':' .. id, 'status', 'idle', 'input', ARGV[2])
redis.call('ZADD', KEYS[4], now, id)
redis.call('SET', KEYS[1], id, 'PX', ARGV[3])
redis.call('PUBLISH', KEYS[5], 'create:' .. id)
redis.call('LPUSH', KEYS[3], id)
return id
"""
)

# KEYS origin, queue, job, channel, lock; ARGV id, output, seconds until the hash and the lock expire.
# Ends a job that was brought and still waits, and forgets its origin in the same step: the next job of that origin is
# a new one. Returns 0 if it does not wait.
WITHDRAW: Final = script(
    END_JOB
    + """
if redis.call('LREM', KEYS[2], 0, ARGV[1]) == 0 then return 0 end
redis.call('DEL', KEYS[1])
return end_job(KEYS[3], KEYS[4], KEYS[5], ARGV[1], 'error', ARGV[2], ARGV[3], ARGV[4])
"""
)

# KEYS lock; ARGV worker, milliseconds. Takes or renews the lock; 0 if another bridge has it.
LOCK: Final = script(
    """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""
)

# KEYS lock; ARGV worker.
UNLOCK: Final = script("if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0")
