"""The rooms of the house keep to their table, and the tool that says so can say no."""

import contextlib
import io
import runpy
from pathlib import Path

import pytest

MAIN = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "check_imports.py"))["main"]


def check(*arguments: str) -> tuple[int, list[str]]:
    """The exit code of the tool, and the lines that it prints."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        code: int = MAIN(list(arguments))
    return code, output.getvalue().splitlines()


def house(folder: Path, **modules: str) -> Path:
    """A package with one module per keyword; `doors__gearman__door` is doors/gearman/door.py."""
    package = folder / "geartrain"
    for name, source in modules.items():
        path = package.joinpath(*name.split("__")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return package


def test_every_import_of_the_package_is_allowed() -> None:
    assert check() == (0, [])


def test_allowed_imports_pass(tmp_path: Path) -> None:
    package = house(
        tmp_path,
        model="import enum\n",
        errors="from geartrain import model\n",
        engine__queue="from geartrain.model import Job\nfrom geartrain.engine import lane\nimport engine\n",
        doors__gearman__door="from geartrain.wire import gearman\nfrom geartrain import engine, errors\n",
        doors__gearman__text="from . import door\nfrom ... import model\n",
        server__start="import geartrain.store.memory\nfrom geartrain import __version__\n",
        server__stop="from ..doors import gearman\n",
        cli__main="from geartrain import client, server\n",
    )
    assert check(str(package)) == (0, [])


@pytest.mark.parametrize(
    ("module", "source", "room", "target"),
    [
        ("engine__queue", "import geartrain.store.memory\n", "engine", "store"),
        ("engine__queue", "from geartrain.store import memory\n", "engine", "store"),
        ("engine__queue", "from geartrain import model, store\n", "engine", "store"),
        ("engine__queue", "from ..store import memory\n", "engine", "store"),
        ("engine__queue", "from .. import store\n", "engine", "store"),
        ("doors__gearman__door", "from ...server import settings\n", "doors", "server"),
        ("wire__gearman", "from geartrain.engine.queue import Lane\n", "wire", "engine"),
        ("client__sync", "from geartrain import engine\n", "client", "engine"),
        ("cli__main", "from geartrain.engine import queue\n", "cli", "engine"),
        ("model", "from geartrain import engine\n", "model", "engine"),
    ],
)
def test_forbidden_import_is_named_with_file_line_and_rooms(
    tmp_path: Path, module: str, source: str, room: str, target: str
) -> None:
    package = house(tmp_path, **{module: "import os\n" + source})
    code, lines = check(str(package))
    assert code == 1
    [line] = lines
    path = package.joinpath(*module.split("__")).with_suffix(".py")
    assert line.startswith(f"{path}:2: `{room}` may not import `{target}`")


def test_import_inside_a_function_counts(tmp_path: Path) -> None:
    package = house(tmp_path, engine__queue="def late():\n    from geartrain.doors import gearman\n")
    code, lines = check(str(package))
    assert code == 1
    assert "queue.py:2: `engine` may not import `doors`" in lines[0]


def test_relative_import_in_a_package_file_starts_at_the_package(tmp_path: Path) -> None:
    package = house(tmp_path, doors____init__="")
    (package / "doors" / "__init__.py").write_text("from . import connection\nfrom .. import server\n")
    code, lines = check(str(package))
    assert code == 1
    assert [line.partition(": ")[2].partition(";")[0] for line in lines] == ["`doors` may not import `server`"]


def test_unknown_room_must_be_added_to_the_table(tmp_path: Path) -> None:
    code, lines = check(str(house(tmp_path, attic__box="")))
    assert code == 1
    assert "`attic` is not in the table of rooms" in lines[0]
