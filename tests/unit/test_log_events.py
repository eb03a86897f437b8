"""docs/operations.md lists every log event of the package: its text and its level.

The sources are parsed, not run. An event is the constant text of a call of a logger, `_log.warning("text", ...)`, or of
a connection's `self.log(level, "text", ...)`; those of the log itself are made by `self.event_line`.
Where the text has `%s` and the like, the page has `...`.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import geartrain

PACKAGE = Path(geartrain.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "operations.md"

# Method of a logger -> level of the event.
LEVELS = {
    "debug": "debug",
    "info": "info",
    "warning": "warning",
    "error": "error",
    "exception": "error",
    "critical": "critical",
}
# The page's tables of events have a row for each: | `text` | level | meaning |
ROW = re.compile(r"^\| `([^`]+)` \| ((?:debug|info|warning|error|critical)(?: or \w+)?) \| .+ \|$", re.MULTILINE)
PLACEHOLDER = re.compile(r"%[.\d]*[a-z]")


def events_of_sources() -> dict[str, set[str]]:
    """Levels by event text."""
    events: dict[str, set[str]] = defaultdict(set)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                for text, levels in events_of_call(node, node.func, path):
                    events[text] |= levels
    return events


def events_of_call(call: ast.Call, function: ast.Attribute, path: Path) -> Iterator[tuple[str, set[str]]]:
    """The event of a log call: a constant text, which is the first argument, or the second one after a level."""
    owner = ast.unparse(function.value)
    if owner == "_log" and function.attr in LEVELS:
        yield constant(call.args[0], path), {LEVELS[function.attr]}
    elif owner in ("self", "connection", "self.connection") and function.attr in ("log", "event_line"):
        yield constant(call.args[1], path), levels_in(call.args[0])


def constant(argument: ast.expr, path: Path) -> str:
    place = f"{path.relative_to(PACKAGE)}:{argument.lineno}"
    assert isinstance(argument, ast.Constant), f"{place}: the text of a log event must be a constant"
    assert isinstance(argument.value, str), f"{place}: the text of a log event must be a string"
    return PLACEHOLDER.sub("...", argument.value)


def levels_in(level: ast.expr) -> set[str]:
    """All levels that an expression such as `logging.DEBUG if quiet else logging.WARNING` can have."""
    names = (node.attr.lower() for node in ast.walk(level) if isinstance(node, ast.Attribute))
    return {name for name in names if name in LEVELS}


def events_of_page() -> dict[str, set[str]]:
    return {text: set(levels.split(" or ")) for text, levels in ROW.findall(PAGE.read_text(encoding="utf-8"))}


def test_every_event_is_on_the_page() -> None:
    assert sorted(events_of_sources().keys() - events_of_page().keys()) == []


def test_every_event_on_the_page_is_logged() -> None:
    assert sorted(events_of_page().keys() - events_of_sources().keys()) == []


def test_levels_on_the_page_are_those_of_the_sources() -> None:
    page = events_of_page()
    wrong = {text: levels for text, levels in events_of_sources().items() if page.get(text, levels) != levels}
    assert wrong == {}


def test_events_are_fixed_texts_without_a_full_stop() -> None:
    texts = events_of_sources()
    assert len(texts) > 40
    assert [text for text in texts if text.endswith(".") and not text.endswith("...")] == []
