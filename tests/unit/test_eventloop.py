"""The event loop: uvloop where it is installed, asyncio otherwise."""

import sys

import pytest

from geartrain import eventloop


def test_uvloop_is_preferred() -> None:
    pytest.importorskip("uvloop")
    best = eventloop.best()
    made = best.factory()
    made.close()
    assert best.name == type(made).__module__ == "uvloop"


def test_asyncio_is_good_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    best = eventloop.best()
    made = best.factory()
    made.close()
    assert best.name == "asyncio"
    assert type(made).__module__.startswith("asyncio")
