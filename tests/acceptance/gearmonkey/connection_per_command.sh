#!/bin/sh
# A GearMonkey worker for one job, with redis-cli: connection_per_command.sh REDIS_CLI PORT FUNCTION
set -eu
cli=$1 port=$2 function=$3

redis() {
    "$cli" -e --raw -p "$port" "$@"
}

redis INCR "count:$function" >/dev/null
id=$(redis BRPOP "queue:$function:high" "queue:$function:normal" "queue:$function:low" 10 | tail -n 1)
job="job:$function:$id"
redis PUBLISH "channel:$function" "start:$id" >/dev/null
redis HMSET "$job" status busy >/dev/null
input=$(redis HGET "$job" input)
redis HMSET "$job" status:dividend 1 status:divisor 2 >/dev/null
redis HMSET "$job" status success output "$(printf %s "$input" | tr a-z A-Z)" >/dev/null
redis EXPIRE "$job" 90000 >/dev/null
redis PUBLISH "channel:$function" "finish:$id" >/dev/null
redis LPUSH "lock:$function:$id" OK >/dev/null
redis EXPIRE "lock:$function:$id" 10 >/dev/null
redis DECR "count:$function" >/dev/null
