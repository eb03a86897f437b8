"""Control of a server beyond its protocol: postpone a job, mark it dead, store schedules.

A Geartrain server answers control jobs on every protocol. On other servers such a job would wait for a worker forever,
so the server is first asked, with a timeout, whether it is a Geartrain.
"""

import asyncio
import ssl
import time
from typing import Any, Final, NamedTuple

import msgspec

from geartrain import jsonbytes
from geartrain.client import control, gearmand
from geartrain.client.async_client import AsyncClient
from geartrain.errors import AdminError, JobFailedError

# The timeout of that question, and after how long a server without an answer is asked again.
_PING_TIMEOUT: Final = 3.0
_PING_AGAIN_AFTER: Final = 60.0
# Protocols that use the engine's handles.
_ENGINE_HANDLES: Final = frozenset({"gearman", "http"})
_UNSUCCESSFUL: Final = frozenset({"failed", "cancelled", "dead", "expired"})


class JobReference(NamedTuple):
    """How a protocol identifies a job."""

    function: bytes
    handle: bytes = b""
    unique: bytes = b""

    def __str__(self) -> str:
        key = (self.handle or self.unique).decode("utf-8", "replace") or "(without handle)"
        return f"job {key} of {self.function.decode('utf-8', 'replace')}"

    @property
    def identifies_job(self) -> bool:
        """Whether the protocol has a handle or key for single jobs."""
        return bool(self.handle or self.unique)


class ServerControl:
    """The control verbs of one server."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None, token: str | None = None) -> None:
        self._url = url
        self._tls = tls
        self._token = token
        self.client = AsyncClient(url, tls=tls, token=token)
        self._known: bool | None = None  # whether the server answers; None: it was not asked yet
        self._pinged_at = 0.0
        self._ping_lock = asyncio.Lock()

    @property
    def has_engine_handles(self) -> bool:
        """Whether the handles of the protocol are those that the verbs take."""
        return self.client.protocol in _ENGINE_HANDLES

    async def available(self) -> bool:
        """Whether the server is a Geartrain that answers control jobs."""
        if self._known:
            return True
        async with self._ping_lock:
            if self._known is None or (not self._known and time.monotonic() - self._pinged_at > _PING_AGAIN_AFTER):
                self._known = await self._ping()
                self._pinged_at = time.monotonic()
        return self._known

    async def ask(self, verb: str, **arguments: Any) -> Any:
        """Call a control verb; returns plain JSON values, AdminError if the server refuses."""
        return await control.ask(self.client, verb, **arguments)

    async def job(self, reference: JobReference, state: str = "") -> dict[str, Any]:
        """The server's view of a job. Without an engine handle, it is the newest job with that key in that state."""
        view: dict[str, Any]
        if self.has_engine_handles:
            view = await self.ask("job", handle=jsonbytes.encode(reference.handle))
            return view
        key = reference.unique or reference.handle
        search = key.decode("utf-8", "replace")
        query = {"function": jsonbytes.encode(reference.function), "search": search, "state": state}
        for view in (await self.ask("jobs", **query))["items"]:
            if key in (jsonbytes.decode(view["unique"]), jsonbytes.decode(view["handle"]), b"%d" % view["id"]):
                return view
        raise AdminError("not-found", f"no job {search} of {reference.function.decode('utf-8', 'replace')}")

    async def close(self) -> None:
        await self.client.close()

    async def _ping(self) -> bool:
        if await gearmand.is_gearmand(self._url, self._tls, self._token):
            return False
        payload = msgspec.json.encode({"do": "ping"})
        try:
            async with asyncio.timeout(_PING_TIMEOUT):
                reply = await self.client.run(control.FUNCTION, payload)
            answer = control.answer_in(msgspec.json.decode(reply))
        except (TimeoutError, JobFailedError, AdminError, msgspec.DecodeError):
            return False
        return isinstance(answer, dict) and answer.get("server") == "geartrain"
