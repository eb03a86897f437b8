"""The clients of a soak: the library by every protocol, a peer with a raw socket, and other people's tools."""

import asyncio
import contextlib
import random
import re
import shutil
from collections.abc import Coroutine, Sequence
from typing import Any, Protocol

import geartrain
from campaigns.soak import job
from campaigns.soak.account import Account, Answer, Submission
from campaigns.soak.job import FUNCTION, POISON, random_job
from geartrain.wire import gearman, gearman_client
from tests.support import redis_server

PACE = 0.15  # seconds between two rounds of a client, on average
_SECONDS_FOR_A_RESULT = 20.0
_PATIENCE = 20.0  # seconds that a call waits for a server
_BATCHES = (1, 1, 2, 5, 20)  # jobs in one round
_LAST_NUMBER = re.compile(r"([0-9]+)$")
_TASK_CREATED = re.compile(rb"Task created: \S*:([0-9]+)")
_LONGEST_DELAY = 3.0  # seconds


class SoakClient(Protocol):
    """One client: `round` submits some jobs. It raises an OSError, EOFError or ClientError when its server is gone."""

    source: str

    async def round(self) -> None:
        """Submit, and enter the answers in the account."""

    async def close(self) -> None:
        """Disconnect."""


class LibraryClient:
    """Our own library, by the protocol of the URL."""

    def __init__(self, url: str, account: Account, seed: int) -> None:
        self.source = url.partition(":")[0]
        self._account = account
        self._chance = random.Random(f"client {self.source} {seed}")
        self._client = geartrain.AsyncClient(url, patience=_PATIENCE)
        self._number = 0

    async def round(self) -> None:
        """Background jobs, and now and then a foreground job; MemoDB has only those."""
        if self._client.capabilities.background and self._chance.random() < 0.8:
            await self._background()
        else:
            await self._foreground()

    async def close(self) -> None:
        await self._client.close()

    async def _background(self) -> None:
        orders = {}
        for _ in range(self._chance.choice(_BATCHES)):
            key = self._next_key()
            orders[key] = self._order(key)
            self._account.background(key, Submission(self.source, Answer.UNCERTAIN))
        answers = await self._client.submit_many(orders.values(), return_exceptions=True)
        for key, answer in zip(orders, answers, strict=True):
            self._account.background(key, self._submission(answer))

    def _order(self, key: str) -> Any:
        """A job with some of what the protocol supports."""
        can, chance = self._client.capabilities, self._chance
        more: dict[str, Any] = {}
        if can.priority:
            more["priority"] = chance.choice(("high", "normal", "normal", "low"))
        # A Periodic job is known by its name only. For the others a key is optional.
        if can.unique and (self.source == "periodic" or chance.random() < 0.5):
            more["unique"] = key
        if can.run_at and more.get("priority", "normal") == "normal" and chance.random() < 0.05:
            more["delay"] = chance.uniform(0, _LONGEST_DELAY)
        return self._client.order(FUNCTION, random_job(key, chance).payload, background=True, **more)

    def _submission(self, answer: geartrain.AsyncJob | Exception) -> Submission:
        if isinstance(answer, geartrain.AsyncJob):
            number = _LAST_NUMBER.search(answer.handle) if self.source != "periodic" else None
            return Submission(self.source, Answer.ACKNOWLEDGED, int(number[1]) if number else 0, FUNCTION)
        self._account.error(answer)
        refused = isinstance(answer, geartrain.RefusedError)
        return Submission(self.source, Answer.REFUSED if refused else Answer.UNCERTAIN)

    async def _foreground(self) -> None:
        key = job.FOREGROUND + self._next_key()
        work = random_job(key, self._chance, may_fail=False)
        result = await self._client.run(FUNCTION, work.payload, wait=_SECONDS_FOR_A_RESULT)
        self._account.result(self.source, key, result)

    def _next_key(self) -> str:
        self._number += 1
        return f"{self.source}-{self._number}"


class RawGearmanClient:
    """A raw socket: pipelined submissions of every priority, and poison."""

    source = "raw gearman"

    def __init__(self, port: int, account: Account, seed: int) -> None:
        self._port = port
        self._account = account
        self._chance = random.Random(f"raw client {seed}")
        self._number = 0
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def round(self) -> None:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        keys = {self._next_key(): self._function() for _ in range(self._chance.choice(_BATCHES))}
        for key in keys:
            self._account.background(key, Submission(self.source, Answer.UNCERTAIN))
        try:
            await asyncio.wait_for(self._submit(keys, *self._streams), _PATIENCE)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    def _function(self) -> str:
        return POISON if self._chance.random() < 0.05 else FUNCTION

    async def _submit(self, keys: dict[str, str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        kinds = (gearman.SUBMIT_JOB_HIGH_BG, gearman.SUBMIT_JOB_BG, gearman.SUBMIT_JOB_LOW_BG)
        for key, function in keys.items():
            payload = random_job(key, self._chance).payload
            kind = self._chance.choice(kinds)
            writer.write(gearman_client.submission(kind, function.encode(), key.encode(), payload))
        await writer.drain()
        for key, function in keys.items():
            header = await reader.readexactly(12)
            body = await reader.readexactly(int.from_bytes(header[8:], "big"))
            if header[7] == gearman.JOB_CREATED:
                answer = Submission(self.source, Answer.ACKNOWLEDGED, int(body.rpartition(b":")[2]), function)
            else:
                answer = Submission(self.source, Answer.REFUSED)
            self._account.background(key, answer)

    def _next_key(self) -> str:
        self._number += 1
        return f"raw-{self._number}"


class GearmanTool:
    """Debian's `gearman`, one process for each job."""

    source = "gearman tool"

    def __init__(self, port: int, account: Account, seed: int) -> None:
        self._port = port
        self._account = account
        self._chance = random.Random(f"gearman tool {seed}")
        self._number = 0

    async def round(self) -> None:
        self._number += 1
        key = f"tool-{self._number}"
        self._account.background(key, Submission(self.source, Answer.UNCERTAIN))
        payload = random_job(key, self._chance)._replace(padding=0).payload
        flags = ["-h", "127.0.0.1", "-p", str(self._port), "-f", FUNCTION, "-u", key, "-b", "-v"]
        output = await run_tool("gearman", *flags, input=payload)
        created = _TASK_CREATED.search(output)  # its exit code is 0 also after an error
        if created is not None:
            self._account.background(key, Submission(self.source, Answer.ACKNOWLEDGED, int(created[1]), FUNCTION))

    async def close(self) -> None:
        """It has no connection."""


class RedisTool:
    """redis-cli, as GearMonkey's document uses a Redis: an id, a hash, a queue."""

    source = "redis-cli"

    def __init__(self, port: int, account: Account, seed: int) -> None:
        self._command = (redis_server.program("redis-cli"), "-p", str(port))
        self._account = account
        self._chance = random.Random(f"redis-cli {seed}")
        self._number = 0

    async def round(self) -> None:
        self._number += 1
        key = f"redis-{self._number}"
        self._account.background(key, Submission(self.source, Answer.UNCERTAIN))
        payload = random_job(key, self._chance)._replace(padding=0).payload.decode()
        answer = await run_tool(*self._command, "INCR", f"uid:{FUNCTION}")
        if not answer.strip().isdigit():
            return
        id = answer.strip().decode()
        await run_tool(*self._command, "HMSET", f"job:{FUNCTION}:{id}", "status", "idle", "input", payload)
        answer = await run_tool(*self._command, "LPUSH", f"queue:{FUNCTION}:normal", id)
        if answer.strip().isdigit():
            self._account.background(key, Submission(self.source, Answer.ACKNOWLEDGED, int(id), FUNCTION))

    async def close(self) -> None:
        """It has no connection."""


async def run_tool(*command: str, input: bytes = b"") -> bytes:
    """The output of somebody else's program."""
    tool = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        output, _ = await asyncio.wait_for(tool.communicate(input), _PATIENCE)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            tool.kill()
        await tool.wait()
        raise
    return output


def available(urls: dict[str, str], account: Account, seed: int) -> tuple[list[SoakClient], list[str]]:
    """All clients that can be used here, and the names of tools that are missing."""
    clients: list[SoakClient] = [LibraryClient(url, account, seed) for url in urls.values()]
    ports = {scheme: int(url.rpartition(":")[2]) for scheme, url in urls.items()}
    clients.append(RawGearmanClient(ports["gearman"], account, seed))
    missing = []
    if shutil.which("gearman"):
        clients.append(GearmanTool(ports["gearman"], account, seed))
    else:
        missing.append("gearman")
    try:
        clients.append(RedisTool(ports["gearmonkey"], account, seed))
    except AssertionError:
        missing.append("redis-cli")
    return clients, missing


async def keep_busy(client: SoakClient, account: Account, seed: int, stop: asyncio.Event, pace: float = PACE) -> None:
    """Rounds until told to stop. An error of the client is counted; the next round tries again."""
    chance = random.Random(f"pace {client.source} {seed}")
    try:
        while not stop.is_set():
            try:
                await client.round()
            except (OSError, EOFError, TimeoutError, geartrain.ClientError) as error:
                account.error(error)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), chance.uniform(0, 2 * pace))
    finally:
        await client.close()


def tasks(
    clients: Sequence[SoakClient], account: Account, seed: int, stop: asyncio.Event
) -> list[Coroutine[Any, Any, None]]:
    return [keep_busy(client, account, seed, stop) for client in clients]
