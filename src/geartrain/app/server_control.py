"""What an app asks of its servers beyond their protocols: to postpone, to bury, to keep schedules, to tell results.

A Geartrain server answers such questions itself, whatever protocol they come by. Other servers do not, and a question
would wait there for ever; so each is asked once whether it knows the word.
"""

import asyncio
import time
from typing import Any, Final, NamedTuple

import msgspec

from geartrain import jsonbytes
from geartrain.client import control, gearmand
from geartrain.client.async_client import AsyncClient
from geartrain.errors import AdminError, JobFailedError, JobTimeoutError

# How long a server may take to say that it is one of ours, and how long a no is believed.
_ANSWERS_WITHIN: Final = 3.0
_ASK_AGAIN_AFTER: Final = 60.0
# How often a result that is not there yet is asked for: soon at first, then ever more seldom.
_FIRST_LOOK: Final = 0.01
_LAST_LOOK: Final = 1.0
# Protocols in which a job's handle is the engine's own.
_ENGINE_HANDLES: Final = frozenset({"gearman", "http"})
_ENDED_BADLY: Final = frozenset({"failed", "cancelled", "dead"})


class JobName(NamedTuple):
    """A job as its protocol calls it."""

    function: bytes
    handle: bytes = b""
    unique: bytes = b""

    def __str__(self) -> str:
        word = (self.handle or self.unique).decode("utf-8", "replace") or "(without a handle)"
        return f"job {word} of {self.function.decode('utf-8', 'replace')}"

    @property
    def says_something(self) -> bool:
        """Whether the protocol has a name for single jobs at all."""
        return bool(self.handle or self.unique)


class ServerControl:
    """One server's answers."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.client = AsyncClient(url)
        self._known: bool | None = None  # whether it answers; None: it was not asked
        self._asked_at = 0.0
        self._asking = asyncio.Lock()

    async def available(self) -> bool:
        """Whether this server answers such questions."""
        if self._known:
            return True
        async with self._asking:
            if self._known is None or (not self._known and time.monotonic() - self._asked_at > _ASK_AGAIN_AFTER):
                self._known = await self._answers()
                self._asked_at = time.monotonic()
        return self._known

    async def ask(self, verb: str, **arguments: Any) -> Any:
        """Its answer, as plain JSON values; a SteeringError if it says no."""
        return await control.ask(self.client, verb, **arguments)

    async def job(self, name: JobName, state: str = "") -> dict[str, Any]:
        """What it knows of a job, as the API shows it; by another name than its handle, the newest in that state."""
        found: dict[str, Any]
        if self.client.protocol in _ENGINE_HANDLES:
            found = await self.ask("job", handle=jsonbytes.encode(name.handle))
            return found
        key = name.unique or name.handle
        search = key.decode("utf-8", "replace")
        wanted = {"function": jsonbytes.encode(name.function), "search": search, "state": state}
        for found in (await self.ask("jobs", **wanted))["items"]:
            if key in (jsonbytes.decode(found["unique"]), jsonbytes.decode(found["handle"]), b"%d" % found["id"]):
                return found
        raise AdminError("not-found", f"there is no job {search} of {name.function.decode('utf-8', 'replace')}")

    async def result(self, name: JobName, timeout: float | None) -> bytes:
        """Wait for the end of a background job."""
        try:
            async with asyncio.timeout(timeout):
                handle = await self._over(name)
        except TimeoutError:
            raise JobTimeoutError(f"{name} did not finish within {timeout:g} seconds") from None
        return jsonbytes.decode(await self.ask("result", handle=handle))

    async def close(self) -> None:
        """Hang up."""
        await self.client.close()

    async def _over(self, name: JobName) -> Any:
        """The handle of a job that is done, once it is."""
        pause = _FIRST_LOOK
        while True:
            job = await self.job(name)
            if job["state"] == "done":
                return job["handle"]
            if job["state"] in _ENDED_BADLY:
                reason = job["reason"] or job["state"]
                raise JobFailedError(f"{name} failed: {reason}", reason, job["code"], reason.encode())
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, _LAST_LOOK)

    async def _answers(self) -> bool:
        if await gearmand.is_gearmand(self._url):
            return False
        question = msgspec.json.encode({"do": "ping"})
        try:
            async with asyncio.timeout(_ANSWERS_WITHIN):
                reply = await self.client.run(control.FUNCTION, question)
            answer = control.answer_in(msgspec.json.decode(reply))
        except (TimeoutError, JobFailedError, AdminError, msgspec.DecodeError):
            return False
        return isinstance(answer, dict) and answer.get("server") == "geartrain"
