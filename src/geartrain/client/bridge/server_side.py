"""The server of a bridge: a Geartrain by any of its protocols, or gearmand."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from geartrain import jsonbytes
from geartrain.client import control, gearmand
from geartrain.client.async_client import AsyncClient
from geartrain.client.bridge.direction import SideState
from geartrain.errors import AdminError

# A few functions are asked for one by one, more by pages of all.
_FEW_FUNCTIONS: Final = 50
_PAGE: Final = 1000
_WITH_HANDLES: Final = ("gearman", "http")  # protocols that tell workers the server's own name of a job


class ServerSide:
    """A server, as a client sees it."""

    def __init__(self, url: str, patience: float) -> None:
        self.url = url
        self.client = AsyncClient(url, patience=patience)
        self._is_gearmand = False

    async def open(self) -> None:
        """Connect, and find out what it is."""
        await self.client.connect()
        self._is_gearmand = await gearmand.is_gearmand(self.url)
        if not self._is_gearmand:
            await control.ask(self.client, "ping")

    @property
    def takes_back(self) -> bool:
        """Whether a worker can give a job back; gearmand takes it only from a worker that disconnects."""
        return not self._is_gearmand and self.client.protocol in _WITH_HANDLES

    async def give_back(self, handle: bytes, reason: str) -> None:
        """Put a job that this bridge has as a worker into its queue again; an AdminError if the server refuses."""
        await control.ask(self.client, "postpone", handle=jsonbytes.encode(handle), seconds=0, reason=reason)

    async def close(self) -> None:
        """Close the connection."""
        await self.client.close()

    async def functions(self) -> set[str]:
        """The functions that it knows."""
        return set(await self._all())

    async def look(self, functions: Sequence[str]) -> list[SideState]:
        """The workers and jobs of functions, in their order; the bridge itself is among them."""
        if self._is_gearmand or len(functions) > _FEW_FUNCTIONS:
            views = await self._all()
            return [_state(views.get(function)) for function in functions]
        return [_state(view) for view in await asyncio.gather(*map(self._view, functions))]

    async def _view(self, function: str) -> dict[str, Any] | None:
        try:
            view: dict[str, Any] = await control.ask(self.client, "function", name=_json_name(function))
        except AdminError as error:
            if error.kind != "not-found":
                raise
            return None
        return view

    async def _all(self) -> dict[str, dict[str, Any]]:
        """All functions by name."""
        if self._is_gearmand:
            items = (await gearmand.functions(self.url, ""))["items"]
        else:
            items, after = [], ""
            while True:
                page = await control.ask(self.client, "functions", limit=_PAGE, after=after)
                items += page["items"]
                after = page["after"]
                if not after:
                    break
        return {jsonbytes.decode(item["name"]).decode("utf-8", "surrogateescape"): item for item in items}


def _json_name(function: str) -> Any:
    return jsonbytes.encode(function.encode("utf-8", "surrogateescape"))


def _state(view: dict[str, Any] | None) -> SideState:
    """A paused function is one whose workers get no jobs."""
    if view is None:
        return SideState()
    return SideState(0 if view["paused"] else view["workers"], view["queued"])
