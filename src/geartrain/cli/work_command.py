"""`geartrain work reverse -- rev`: a worker that runs a command for each job."""

import asyncio
import os
import sys
from typing import Any, Final

from geartrain import escape
from geartrain.errors import GeartrainError

_REASON_LIMIT: Final = 2000  # characters from the end of a command's stderr


async def run(
    server: str,
    functions: list[str],
    command: list[str],
    concurrency: int,
    timeout: float,
    name: str,
    max_share: float,
) -> None:
    from geartrain.client.async_worker import AsyncWorker

    async def execute(job: Any) -> bytes:
        return await _execute(job, command, timeout)

    worker = AsyncWorker(*server.split(","), concurrency=concurrency, name=name or f"{command[0]}@{os.getpid()}")
    for function in functions:
        worker.register(function, execute, timeout=timeout, max_share=max_share)
    print(f"working on {', '.join(functions)} for {server}", file=sys.stderr)
    await worker.run()


def _variable(name: str) -> str:
    """A name for the environment, which cannot hold a NUL."""
    return escape.escape(name.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


async def _execute(job: Any, command: list[str], timeout: float) -> bytes:
    """Run a job's command. It never outlives the job."""
    environment = {
        **os.environ,
        "GEARTRAIN_FUNCTION": _variable(job.function),
        "GEARTRAIN_HANDLE": _variable(job.handle),
        "GEARTRAIN_UNIQUE": _variable(job.unique),
    }
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, start_new_session=True
        )
    except OSError as error:
        raise CommandFailedError(f"{command[0]}: {error.strerror}") from None
    try:
        async with asyncio.timeout(timeout or None):
            result, errors = await process.communicate(job.payload)
    except TimeoutError:
        raise CommandFailedError(f"{command[0]} took longer than {timeout:g} seconds") from None
    finally:
        if process.returncode is None:
            os.killpg(process.pid, 9)
            await process.wait()
    if process.returncode:
        reason = errors.decode("utf-8", "replace").strip()[-_REASON_LIMIT:]
        reason = reason or f"{command[0]} ended with exit code {process.returncode}"
        raise CommandFailedError(reason, process.returncode)
    return result


class CommandFailedError(GeartrainError):
    """A job's command failed. `code` is sent to the client, where the protocol has codes."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code if 1 <= code <= 255 else 1
