"""Running jobs: coroutines, threads, processes; what a worker says, offers and survives."""

import asyncio
import os
import threading
from pathlib import Path

import pytest

import geartrain
from geartrain.client.job_events import Completed, Data, Progressed, Warned
from tests.acceptance.library import functions
from tests.acceptance.library.conftest import PATIENCE, play, until, working
from tests.support import serving
from tests.support.gearman_peer import Peer

MODES = ["thread", "process", "inline"]


@pytest.mark.parametrize("mode", MODES)
def test_a_plain_function_in_every_mode(server: serving.ServerProcess, function: str, mode: str) -> None:
    async def scenario() -> None:
        worker = geartrain.AsyncWorker(server.url, mode=mode)
        worker.register(function, functions.talk)
        worker.register(f"{function}-fail", functions.fail)
        worker.register(f"{function}-names", functions.names)
        async with worker, geartrain.AsyncClient(server.url) as client:
            job = await client.submit(function, "abc")
            heard = [event async for event in job.events()]
            assert heard == [Progressed(1, 2), Data(b"part"), Warned(b"careful"), Completed(b"cba")]
            with pytest.raises(geartrain.JobFailedError, match="KeyError: 'nothing here'"):
                await client.run(f"{function}-fail")
            named = await client.submit(f"{function}-names", unique="key")
            assert await named.result() == f"{function}-names {named.handle} key".encode()

    play(scenario)


def test_where_each_mode_runs(ours: serving.ServerProcess, function: str) -> None:
    async def scenario() -> dict[str, bytes]:
        worker = geartrain.AsyncWorker(ours.url)
        for mode in MODES:
            worker.register(f"{function}-{mode}", functions.whereabouts, mode=mode)
        async with worker, geartrain.AsyncClient(ours.url) as client:
            return {mode: await client.run(f"{function}-{mode}") for mode in MODES}

    seen = play(scenario)
    here = f"{os.getpid()} {threading.get_ident()}".encode()
    assert seen["inline"] == here
    assert seen["thread"].split()[0] == here.split()[0]
    assert seen["thread"] != here
    assert seen["process"].split()[0] != here.split()[0]


@pytest.mark.parametrize("mode", ["thread", "process"])
def test_as_many_at_once_as_allowed(ours: serving.ServerProcess, function: str, mode: str, tmp_path: object) -> None:
    """Each waits until all three are there: with fewer at once none would ever end."""

    async def scenario() -> None:
        worker = geartrain.AsyncWorker(ours.url, concurrency=3, mode=mode)
        worker.register(function, functions.meet)
        async with worker, geartrain.AsyncClient(ours.url) as client:
            jobs = [await client.submit(function, str(tmp_path)) for _ in range(3)]
            assert [await job.result(PATIENCE) for job in jobs] == [b"3"] * 3

    play(scenario)


def test_a_process_that_dies_takes_only_its_job_with_it(ours: serving.ServerProcess, function: str) -> None:
    async def scenario() -> None:
        worker = geartrain.AsyncWorker(ours.url, mode="process")
        worker.register(function, functions.die)
        worker.register(f"{function}-well", functions.talk)
        async with worker, geartrain.AsyncClient(ours.url) as client:
            with pytest.raises(geartrain.JobFailedError, match=r"the process that ran it died \(exit code 7\)"):
                await client.run(function)
            assert await client.run(f"{function}-well", "abc") == b"cba"

    play(scenario)


def test_a_function_that_cannot_be_sent_to_a_process(ours: serving.ServerProcess, function: str) -> None:
    async def scenario() -> None:
        worker = geartrain.AsyncWorker(ours.url, mode="process")
        worker.register(function, lambda job: b"")
        async with worker, geartrain.AsyncClient(ours.url) as client:
            with pytest.raises(geartrain.JobFailedError, match="cannot be sent to a process"):
                await client.run(function)

    play(scenario)


@pytest.mark.parametrize(
    ("result", "expected"), [(b"x", b"x"), ("\u00fc", b"\xc3\xbc"), (None, b""), (bytearray(b"y"), b"y")]
)
def test_what_a_function_may_return(
    ours: serving.ServerProcess, function: str, result: bytes | str | None, expected: bytes
) -> None:
    async def give(job: geartrain.Job) -> bytes | str | None:
        return result

    async def scenario() -> None:
        async with geartrain.AsyncClient(ours.url) as client, working(ours.url, **{function: give}):
            assert await client.run(function) == expected

    play(scenario)


def test_anything_else_fails_the_job(ours: serving.ServerProcess, function: str) -> None:
    async def give(job: geartrain.Job) -> int:
        return 42

    async def scenario() -> None:
        async with geartrain.AsyncClient(ours.url) as client, working(ours.url, **{function: give}):
            with pytest.raises(geartrain.JobFailedError, match=r"bytes, text or None; .* returned int"):
                await client.run(function)

    play(scenario)


def test_a_function_may_choose_what_its_client_hears(ours: serving.ServerProcess, function: str) -> None:
    async def refuse(job: geartrain.Job) -> None:
        raise geartrain.JobFailedError("no paper", data=b'{"tray": 2}')

    async def scenario() -> None:
        async with geartrain.AsyncClient(ours.url) as client, working(ours.url, **{function: refuse}):
            with pytest.raises(geartrain.JobFailedError) as caught:
                await client.run(function)
            assert caught.value.data == b'{"tray": 2}'

    play(scenario)


def test_tracebacks_only_if_wanted(ours: serving.ServerProcess, function: str) -> None:
    async def scenario() -> None:
        for tracebacks in (False, True):
            worker = geartrain.AsyncWorker(ours.url, tracebacks=tracebacks)
            worker.register(function, functions.fail)
            async with worker, geartrain.AsyncClient(ours.url) as client:
                with pytest.raises(geartrain.JobFailedError) as caught:
                    await client.run(function)
                assert ("functions.py" in caught.value.reason) is tracebacks

    play(scenario)


def test_functions_come_and_go_while_it_works(server: serving.ServerProcess, function: str) -> None:
    async def scenario() -> None:
        started, go = asyncio.Event(), asyncio.Event()

        async def slow(job: geartrain.Job) -> str:
            started.set()
            await go.wait()
            return "done"

        worker = geartrain.AsyncWorker(server.url, concurrency=2)
        async with worker, geartrain.AsyncClient(server.url) as client:
            job = await client.submit(function)
            worker.register(function, slow)
            await started.wait()
            worker.unregister(function)  # what runs goes on, though a withdrawn offer would take it away
            go.set()
            assert await job.result() == b"done"
            with Peer(server.port) as admin:

                async def withdrawn() -> bool:
                    return [function.encode(), b"0", b"0", b"0"] in admin.listing("status")

                await until(withdrawn, "the function is withdrawn")

    play(scenario)


def test_people_can_see_who_it_is(server: serving.ServerProcess, function: str) -> None:
    async def scenario() -> None:
        worker = geartrain.AsyncWorker(server.url, name=f"worker-of-{function}")
        worker.register(function, functions.talk)
        async with worker:
            with Peer(server.port) as admin:
                admin.text("workers")
                lines = [line for line in admin.block() if f" worker-of-{function} : {function}".encode() in line]
                assert len(lines) == 1

    play(scenario)


def test_a_coroutine_that_takes_too_long_is_cancelled(ours: serving.ServerProcess, function: str) -> None:
    cancelled = asyncio.Event()

    async def hang(job: geartrain.Job) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async def scenario() -> None:
        worker = geartrain.AsyncWorker(ours.url)
        worker.register(function, hang, timeout=1.0)
        async with worker, geartrain.AsyncClient(ours.url) as client:
            with pytest.raises(geartrain.JobFailedError):
                await client.run(function)
            await cancelled.wait()

    play(scenario)


def test_a_coroutine_that_cancels_itself_fails(ours: serving.ServerProcess, function: str) -> None:
    async def give_up(job: geartrain.Job) -> None:
        raise asyncio.CancelledError

    async def scenario() -> None:
        async with geartrain.AsyncClient(ours.url) as client, working(ours.url, **{function: give_up}):
            with pytest.raises(geartrain.JobFailedError, match="cancelled"):
                await client.run(function)

    play(scenario)


def test_the_decorator(ours: serving.ServerProcess, function: str) -> None:
    async def scenario() -> None:
        worker = geartrain.AsyncWorker(ours.url)

        @worker.function(function)
        async def shout(job: geartrain.Job) -> bytes:
            return job.payload.upper()

        @worker.function()
        def by_its_own_name(job: geartrain.Job) -> bytes:
            return b"mine"

        async with worker, geartrain.AsyncClient(ours.url) as client:
            assert await client.run(function, "abc") == b"ABC"
            assert await client.run("by_its_own_name") == b"mine"

    play(scenario)


def test_a_worker_is_client_too(ours: serving.ServerProcess, function: str) -> None:
    async def scenario() -> None:
        async with geartrain.AsyncClient(ours.url) as client:

            async def outer(job: geartrain.Job) -> bytes:
                return await client.run(f"{function}-inner", job.payload)

            async def inner(job: geartrain.Job) -> bytes:
                return job.payload * 2

            async with working(ours.url, **{function: outer, f"{function}-inner": inner}):
                assert await client.run(function, "ab") == b"abab"

    play(scenario)


@pytest.mark.parametrize("mode", ["thread", "process", "coroutine"])
def test_jobs_taken_ahead_wait_here_and_run_in_turn(
    ours: serving.ServerProcess, function: str, mode: str, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"

    async def wait_for_gate(job: geartrain.Job) -> bytes | str:
        return await asyncio.to_thread(functions.wait_for_gate, job)

    async def scenario() -> None:
        if mode == "coroutine":
            worker = geartrain.AsyncWorker(ours.url, prefetch=3)
            worker.register(function, wait_for_gate)
        else:
            worker = geartrain.AsyncWorker(ours.url, prefetch=3, mode=mode)
            worker.register(function, functions.wait_for_gate)
        async with geartrain.AsyncClient(ours.url) as client, worker:
            jobs = [await client.submit(function, str(gate)) for _ in range(6)]
            with Peer(ours.port) as admin:

                async def taken() -> bool:
                    return [function.encode(), b"6", b"4", b"1"] in admin.listing("status")

                await until(taken, "one runs and three were taken ahead")

            async def one_runs() -> bool:
                return [(await job.status()).numerator for job in jobs] == [1, 0, 0, 0, 0, 0]

            await until(one_runs, "the first runs, and no other")
            gate.touch()
            assert [await job.result() for job in jobs] == [b"through"] * 6

    play(scenario)
