"""Targets of `geartrain work`: what is wrong with one is said in a line, or with the traceback of the user's module."""

from pathlib import Path

import pytest

from geartrain.cli import app_target
from geartrain.errors import AppError

MODULE = """
import logging, types
from geartrain import App
app = App("shop")
log = logging.getLogger("shop")
inner = types.SimpleNamespace(app=app)
"""
WRONG = {
    "no_such_shop:app": r"no module 'no_such_shop': 'no_such_shop' is not in .* and not installed$",
    "target_shop.tasks:app": r"no module 'target_shop.tasks'|is not a package",
    "target_shop:application": r"module 'target_shop' has no 'application'; its apps: app$",
    "target_shop:inner.shop": r"module 'target_shop' has no 'inner.shop'; its apps: app$",
    "target_shop:log": r"'log' is a Logger, not a geartrain.App; its apps: app$",
    "target_shop:": r"'target_shop:' does not name an App; write module:app",
    "target_empty:app": r"module 'target_empty' has no 'app'; it has no App$",
    "target_broken:app": r"cannot import 'target_broken':\nTraceback .*\n.*target_broken.py\", line 1(.*\n)*.*Zero",
    "target_needy:app": r"cannot import 'target_needy':\nTraceback .*\n(.*\n)*ModuleNotFoundError: .* 'absent'",
}


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "target_shop.py").write_text(MODULE)
    (tmp_path / "target_empty.py").write_text("")
    (tmp_path / "target_broken.py").write_text("1 / 0\n")
    (tmp_path / "target_needy.py").write_text("import absent\n")


@pytest.mark.parametrize("target", WRONG)
def test_wrong_targets(target: str) -> None:
    with pytest.raises(AppError, match=WRONG[target]):
        app_target.load(target)


@pytest.mark.parametrize("target", ["target_shop:app", "target_shop:inner.app"])
def test_targets(target: str) -> None:
    assert app_target.load(target).name == "shop"
