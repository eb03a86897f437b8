"""Work in a thread, beside a loop that is busy."""

import sys
from collections.abc import Iterator

import pytest

from geartrain.runtime.work_thread import SWITCH_SECONDS, WorkThread, tune_switching


@pytest.fixture(autouse=True)
def _switching() -> Iterator[None]:
    """Leave the process as it was."""
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


def test_a_server_lets_threads_take_turns_more_often_than_python_does() -> None:
    assert sys.getswitchinterval() > SWITCH_SECONDS
    tune_switching()
    assert sys.getswitchinterval() == pytest.approx(SWITCH_SECONDS)


def test_work_is_done_in_its_order_and_the_thread_ends() -> None:
    done: list[int] = []
    thread = WorkThread("test")
    for number in range(3):
        thread.put(lambda number=number: done.append(number))  # type: ignore[misc]
    thread.start()
    thread.end()
    thread.join()
    assert done == [0, 1, 2]
