"""Workers of apps: start, stop, reconnecting, schedules."""

import asyncio
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from geartrain.app import App
from tests.support import apps, process, serving


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


def test_schedules_are_registered_and_removed(app: App, server: serving.ServerProcess) -> None:
    ran = asyncio.Event()

    @app.cron("0 3 * * *", timezone="Europe/Berlin")
    async def nightly() -> None:
        ran.set()

    @app.cron("* * * * *", name="old")
    @app.task
    async def gone() -> None: ...

    async def mine() -> dict[str, Any]:
        return {cron["name"]: cron for cron in await apps.ask(app, "crons") if cron["name"].startswith(f"{app.name}/")}

    async def scenario() -> None:
        async with apps.working(app):
            await apps.ask(
                app, "cron_set", name=f"{app.name}-other/x", expression="* * * * *", function=f"{app.name}.gone"
            )
            first = await mine()
            assert first.keys() == {f"{app.name}/nightly", f"{app.name}/old"}
            assert first[f"{app.name}/nightly"]["timezone"] == "Europe/Berlin"
            await apps.ask(app, "cron_run", name=f"{app.name}/nightly")
            await ran.wait()
        del app.schedules[f"{app.name}/old"]
        async with apps.working(app):
            second = await mine()
            assert second.keys() == {f"{app.name}/nightly"}
            assert second[f"{app.name}/nightly"]["next_at"] == first[f"{app.name}/nightly"]["next_at"]
            others = {cron["name"] for cron in await apps.ask(app, "crons")}
            assert f"{app.name}-other/x" in others
            await apps.ask(app, "cron_remove", name=f"{app.name}-other/x")

    run(scenario())


def test_stop_waits_for_running_tasks(app: App) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    @app.task
    async def slow() -> str:
        begun.set()
        await go_on.wait()
        return "finished"

    async def scenario() -> None:
        async with apps.working(app) as worker:
            handle = await slow.start()
            await begun.wait()
            worker.stop()
            go_on.set()
            assert await handle.result(apps.SECONDS) == "finished"

    run(scenario())


def test_worker_reconnects_after_a_restart(app: App, tmp_path: Path) -> None:
    """The server has stored schedules and jobs; the worker only has to reconnect."""

    @app.task(resubmit=True)
    async def double(number: int) -> int:
        return 2 * number

    store = ("--store", f"sqlite://{tmp_path}/jobs.db")

    async def scenario() -> None:
        with serving.serve(*store, "--listen", f"gearman://{serving.HOST}:0") as first:
            app.urls = (first.url,)
            worker = apps.AppWorker(app)
            await worker.start()
            await worker.ready()
            assert await double.call(1) == 2
            first.kill()
        with serving.serve(*store, "--listen", first.url):
            async with asyncio.timeout(apps.SECONDS):
                assert await double.call(2) == 4
                assert await (await double.submit(3)).result() == 6
            await worker.close()
            await app.close()

    run(scenario())


def test_two_servers(app: App, server: serving.ServerProcess) -> None:
    tries: list[str] = []

    @app.task(retries=1, backoff=0)
    async def shaky(where: str) -> str:
        tries.append(where)
        if tries.count(where) == 1:
            raise ConnectionError("not yet")
        return where

    async def scenario() -> None:
        with serving.serve("--store", "memory", "--listen", f"gearman://{serving.HOST}:0") as second:
            app.urls = (server.url, second.url)
            async with apps.working(app):
                for url in app.urls:
                    client = App(app.name, url)
                    same = client.task(name=shaky.name, retries=1)(shaky.function)
                    async with client:
                        assert await (await same.submit(url)).result(apps.SECONDS) == url
                handles = await app.submit_many([shaky.bind("both")])
                assert await handles[0].result(apps.SECONDS) == "both"

    run(scenario())


PROGRAM = """
import sys, time
from geartrain.app import App

app = App("program", sys.argv[1])

@app.task
def slow() -> str:
    print("begun", flush=True)
    sys.stdin.readline()
    return "finished"

app.run(concurrency=1)
print("ended", flush=True)
"""


def test_sigterm_waits_for_running_tasks(app: App, server: serving.ServerProcess, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    client = App("program", server.url)

    @client.task
    def slow() -> str:
        return "not here"

    async def scenario() -> None:
        program = process.Process([sys.executable, "program.py", server.url], tmp_path, stdin=True)
        try:
            async with client, asyncio.timeout(apps.SECONDS):
                handle = await slow.start()
                await asyncio.to_thread(program.wait_until, lambda lines: "begun" in lines, "begun")
                program.process.send_signal(signal.SIGTERM)
                program.write(b"\n")
                assert await handle.result() == "finished"
            assert program.wait() == 0
            assert program.lines == ["begun", "ended"]
        finally:
            program.kill()

    run(scenario())
