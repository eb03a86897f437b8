"""Asking a Gearman server that is not ours, in the admin's text: a C gearmand has no control function.

The answers have the shape of a Geartrain server's, so that who shows them need not care; what gearmand does not know is
zero or none.
"""

import asyncio
import contextlib
from typing import Any, Final

from geartrain import address
from geartrain.errors import ServerGoneError

_PATIENCE: Final = 10.0
_END: Final = b".\n"


async def is_one(url: str) -> bool:
    """Whether this URL leads to a Gearman server that is not a Geartrain."""
    place = address.parse(url)
    return place.scheme == "gearman" and b"geartrain" not in await _ask(place, b"version\n", b"\n")


async def functions(url: str, search: str) -> dict[str, Any]:
    """Its functions, from `status`: name, all jobs, running ones, workers."""
    items = []
    for line in (await _ask(address.parse(url), b"status\n", _END)).splitlines()[:-1]:
        name, total, running, workers = line.rsplit(b"\t", 3)
        if search.encode() in name:
            items.append(
                {
                    "name": name.decode("utf-8", "replace"), "queued": int(total) - int(running),
                    "running": int(running), "scheduled": 0, "dead": 0, "workers": int(workers), "paused": False,
                    "limits": (0, 0, 0), "oldest": None, "submitted": 0, "completed": 0, "failed": 0,
                }
            )  # fmt: skip
    return {"items": items, "after": ""}


async def workers(url: str, search: str) -> dict[str, Any]:
    """Its connections that offer functions, from `workers`: fd, peer, name, functions."""
    items = []
    for line in (await _ask(address.parse(url), b"workers\n", _END)).decode("utf-8", "replace").splitlines()[:-1]:
        who, _, offered = line.partition(" :")
        number, peer, name = (*who.split(" ", 2), "")[:3]
        names = offered.split()
        if names and any(search in word for word in (name, *names)):
            items.append(
                {
                    "id": int(number), "name": "" if name == "-" else name, "door": "gearman", "peer": peer,
                    "since": None, "functions": names, "function_count": len(names), "idle": None, "running": [],
                    "running_since": None,
                }
            )  # fmt: skip
    return {"items": items, "after": ""}


async def _ask(place: address.Address, command: bytes, end: bytes) -> bytes:
    """The answer to one line, which ends as said."""
    try:
        async with asyncio.timeout(_PATIENCE):
            reader, writer = await asyncio.open_connection(place.host, place.port)
            try:
                writer.write(command)
                answer = b""
                while not answer.endswith(end) or (
                    end == _END and answer != _END and not answer.endswith(b"\n" + _END)
                ):
                    part = await reader.read(65536)
                    if not part:
                        raise ServerGoneError(f"{place} hung up instead of answering")
                    answer += part
                return answer
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
    except TimeoutError:
        raise ServerGoneError(f"{place} did not answer within {_PATIENCE:g} seconds") from None
    except OSError as error:
        raise ServerGoneError(f"cannot reach {place}: {error.strerror or error}") from None
