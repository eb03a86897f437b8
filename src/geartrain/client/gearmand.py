"""Inspect a Gearman server that is not a Geartrain, over the text protocol: it has no control function.

The answers have the same fields as a Geartrain server's; those that gearmand does not know are zero or None.
"""

import asyncio
import contextlib
import ssl
from typing import Any, Final

from geartrain import address
from geartrain.client.credentials import credentials_for
from geartrain.client.protocols.gearman import authentication
from geartrain.errors import ServerGoneError

_ANSWER_SECONDS: Final = 10.0
_END: Final = b".\n"


async def is_gearmand(url: str, tls: ssl.SSLContext | None = None, token: str | None = None) -> bool:
    """Whether a Gearman server that is not a Geartrain listens at this URL."""
    server = address.parse(url)
    return server.scheme == "gearman" and b"geartrain" not in await _ask(server, b"version\n", b"\n", tls, token)


async def functions(url: str, search: str) -> dict[str, Any]:
    """The functions, from `status`: name, jobs, running jobs, workers."""
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
    """The connections with functions, from `workers`: fd, peer, name, functions."""
    items = []
    for line in (await _ask(address.parse(url), b"workers\n", _END)).decode("utf-8", "replace").splitlines()[:-1]:
        connection, _, functions = line.partition(" :")
        number, peer, name = (*connection.split(" ", 2), "")[:3]
        names = functions.split()
        if names and any(search in word for word in (name, *names)):
            items.append(
                {
                    "id": int(number), "name": "" if name == "-" else name, "door": "gearman", "peer": peer,
                    "since": None, "functions": names, "function_count": len(names), "idle": None, "running": [],
                    "running_since": None,
                }
            )  # fmt: skip
    return {"items": items, "after": ""}


async def ask(url: str, command: str, token: str | None = None) -> bytes:
    """The answer to a command of the text protocol that lists something; an error is one line that begins with ERR."""
    return await _ask(address.parse(url), command.encode() + b"\n", _END, token=token)


async def _ask(
    server: address.Address,
    command: bytes,
    end: bytes,
    tls: ssl.SSLContext | None = None,
    token: str | None = None,
) -> bytes:
    """The answer to one command; `end` is how it ends."""
    credentials = credentials_for(server, tls, token)
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            reader, writer = await asyncio.open_connection(server.host, server.port, ssl=credentials.tls)
            try:
                if credentials.token:
                    writer.write(authentication.request(credentials.token))
                    authentication.check_answer(server, await reader.readline())
                writer.write(command)
                answer = bytearray()
                while not _is_whole(answer, end):
                    part = await reader.read(65536)
                    if not part:
                        raise ServerGoneError(f"{server} closed the connection instead of answering")
                    answer += part
                return bytes(answer)
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
    except TimeoutError:
        raise ServerGoneError(f"{server} did not answer within {_ANSWER_SECONDS:g} seconds") from None
    except OSError as error:
        raise ServerGoneError(f"cannot reach {server}: {error.strerror or error}") from None


def _is_whole(answer: bytearray, end: bytes) -> bool:
    if answer.startswith(b"ERR ") and answer.endswith(b"\n") and b"\t" not in answer:
        return True
    return answer.endswith(end) and (end != _END or answer == _END or answer.endswith(b"\n" + _END))
