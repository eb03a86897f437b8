"""A GearMonkey client and worker written from the document with nothing but redis-py.

They have the methods of our own, so that the same scenario can be played by either.
"""

import time
from collections.abc import Callable
from typing import Any

import redis

from geartrain.client.gearmonkey import Job, Options
from geartrain.errors import NoWorkersError

SCRIPT = (
    "local item = redis.call('ZRANGEBYSCORE', KEYS[1], 0, ARGV[1], 'LIMIT', 0, 1); if (#item > 0) then redis.call("
    "'ZREM', KEYS[1], item[1]); return { KEYS[1],  item[1] }; end"
)
SHA1 = "5231827cd49b540660ef44969b38cc858f157824"


def connect(port: int, **options: Any) -> Any:
    return redis.Redis(port=port, socket_timeout=None, **options)


class Client:
    def __init__(self, port: int) -> None:
        self.redis = connect(port)

    def run(
        self,
        function: str,
        payload: bytes | str = b"",
        priority: str = "normal",
        options: Options = Options.NONE,
        timeout: float = 0,
        scheduled: float | None = None,
    ) -> int:
        if Options.ROLLCALL in options and int(self.redis.get(f"count:{function}") or 0) < 1:
            raise NoWorkersError("nobody")
        number = int(self.redis.incr(f"uid:{function}"))
        self.redis.execute_command("HMSET", f"job:{function}:{number}", "status", "idle", "input", payload)
        self.redis.publish(f"channel:{function}", f"create:{number}")
        if priority == "scheduled":
            self.redis.zadd(f"queue:{function}:scheduled", {str(number): scheduled})
        else:
            self.redis.lpush(f"queue:{function}:{priority}", number)
        if Options.BLOCKING in options:
            self.redis.brpop([f"lock:{function}:{number}"], timeout)
        return number

    def get(self, function: str, number: int) -> Job:
        fields = self.redis.hgetall(f"job:{function}:{number}")
        dividend, divisor = fields.get(b"status:dividend"), fields.get(b"status:divisor")
        return Job(
            fields[b"status"].decode() if fields else None,
            fields.get(b"input"),
            fields.get(b"output"),
            int(dividend) if dividend else None,
            int(divisor) if divisor else None,
        )

    def close(self) -> None:
        self.redis.close()


class Worker:
    def __init__(self, port: int, work: Callable[[bytes], Any]) -> None:
        self.redis = connect(port)
        self.work = work
        self.functions: list[str] = []
        self.current = ""
        assert self.redis.script_load(SCRIPT) == SHA1

    def accept(self, function: str) -> None:
        self.functions.append(function)
        self.redis.incr(f"count:{function}")

    def update(self, dividend: int, divisor: int) -> None:
        progress = ("status:dividend", dividend, "status:divisor", divisor)
        self.redis.execute_command("HMSET", self.current, *progress)

    def run_one(self, seconds: float = 1) -> bool:
        popped = self._pop(seconds)
        if popped is None:
            return False
        function, number = popped
        self.current = f"job:{function}:{number}"
        self.redis.publish(f"channel:{function}", f"start:{number}")
        self.redis.execute_command("HMSET", self.current, "status", "busy")
        try:
            status, output = "success", self.work(self.redis.hget(self.current, "input"))
        except Exception as error:
            status, output = "error", str(error)
        self.redis.execute_command("HMSET", self.current, "status", status, "output", output)
        self.redis.expire(self.current, 90000)
        self.redis.publish(f"channel:{function}", f"finish:{number}")
        self.redis.lpush(f"lock:{function}:{number}", "OK")
        self.redis.expire(f"lock:{function}:{number}", 10)
        return True

    def _pop(self, seconds: float) -> tuple[str, int] | None:
        for function in self.functions:
            due = self.redis.evalsha(SHA1, 1, f"queue:{function}:scheduled", int(time.time()))
            if due:
                return function, int(due[1])
        queues = [f"queue:{fn}:{prio}" for prio in ("high", "normal", "low") for fn in self.functions]
        popped = self.redis.brpop(queues, seconds)
        if not popped:
            return None
        return popped[0].decode().split(":", 1)[1].rpartition(":")[0], int(popped[1])

    def close(self) -> None:
        for function in self.functions:
            self.redis.decr(f"count:{function}")
        self.redis.close()
