"""Apps in programs without an event loop."""

import os

import pytest

from geartrain.app import App, current_task
from geartrain.app.worker import AppWorker
from geartrain.client.job_events import Completed, Progressed
from geartrain.client.loop_thread import LoopThread
from geartrain.errors import JobFailedError
from tests.support import apps


def test_sync_methods(app: App) -> None:
    @app.task
    def add(a: int, b: int) -> int:
        current_task().progress(1, 2)
        return a + b

    @app.task
    def wrong() -> None:
        raise ValueError("no")

    work = LoopThread()
    worker = AppWorker(app)

    async def begin() -> None:
        await worker.start()
        await worker.ready()

    work.call(begin())
    try:
        with app:
            assert add.call_sync(1, 2) == 3
            handle = add.submit_sync(3, 4)
            assert handle.handle.startswith("H:")
            assert handle.result(apps.SECONDS) == 7
            assert handle.id in repr(handle)
            assert not handle.cancel()
            assert not handle.status().known
            assert list(add.start_sync(1, 1).events()) == [Progressed(1, 2), Completed(b"2")]
            assert [each.result(apps.SECONDS) for each in app.submit_many_sync([add.bind(1, 1), add.bind(2, 2)])] == [
                2,
                4,
            ]
            with pytest.raises(JobFailedError, match="ValueError: no"):
                wrong.call_sync()
        with app:
            assert add.call_sync(5, 5) == 10
    finally:
        work.end(worker.close())


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # that is what is tried here
def test_forked_child_has_its_own_loop(app: App) -> None:
    @app.task
    def later() -> None: ...

    with app:
        first = later.submit_sync().handle
        child = os.fork()
        if not child:
            code = 1
            try:
                code = 0 if later.submit_sync().handle not in ("", first) else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert later.submit_sync().handle
