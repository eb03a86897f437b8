"""Only the tick sets the engine's time, so that everything in one tick happens at one time."""

import ast
from pathlib import Path

import geartrain

PACKAGE = Path(geartrain.__file__).parent
ROOMS = ("admin", "doors", "maintenance", "runtime", "server")  # those that hold an engine
TICK = PACKAGE / "runtime" / "tick.py"


def assignments(path: Path) -> list[int]:
    """The lines that assign to an attribute called `now`."""
    lines = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        lines += [target.lineno for target in targets if isinstance(target, ast.Attribute) and target.attr == "now"]
    return lines


def test_nobody_but_the_tick_sets_the_time() -> None:
    others = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for room in ROOMS
        for path in (PACKAGE / room).rglob("*.py")
        if path != TICK
        for line in assignments(path)
    ]
    assert not others, "call TickLoop.begin_tick instead"
    assert assignments(TICK)


def test_the_search_finds_assignments(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text("engine.now = 1\nnow = engine.now = 2\nself.engine.now += 3\nnow = engine.now\n")
    assert assignments(path) == [1, 2, 3]
