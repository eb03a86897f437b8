<?php
// A GearMonkey worker for one job, with the redis extension: connection_per_command.php PORT FUNCTION

[, $port, $function] = $argv;

function redis(string $command, mixed ...$arguments): mixed
{
    global $port;
    $redis = new Redis();
    $redis->connect('127.0.0.1', (int) $port);
    try {
        $reply = $redis->rawCommand($command, ...$arguments);
        if ($redis->getLastError() !== null) {
            throw new RuntimeException($redis->getLastError());
        }
        return $reply;
    } finally {
        $redis->close();
    }
}

redis('INCR', "count:$function");
[, $id] = redis('BRPOP', "queue:$function:high", "queue:$function:normal", "queue:$function:low", 10);
$job = "job:$function:$id";
redis('PUBLISH', "channel:$function", "start:$id");
redis('HMSET', $job, 'status', 'busy');
$input = redis('HGET', $job, 'input');
redis('HMSET', $job, 'status:dividend', 1, 'status:divisor', 2);
redis('HMSET', $job, 'status', 'success', 'output', strtoupper($input));
redis('EXPIRE', $job, 90000);
redis('PUBLISH', "channel:$function", "finish:$id");
redis('LPUSH', "lock:$function:$id", 'OK');
redis('EXPIRE', "lock:$function:$id", 10);
redis('DECR', "count:$function");
