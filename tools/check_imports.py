"""Who may import whom inside the package: the architecture's table of rooms, as data, and its check.

Every module is parsed, never run, and imports inside functions count as well. A room may always import its
own modules and the plain top-level ones; of other rooms, only those that its row of the table names.

    python tools/check_imports.py [path/to/package]
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "geartrain"
# Every room may import these; they import only each other.
PLAIN = frozenset(
    {
        "model",
        "errors",
        "address",
        "compiled",
        "cron",
        "eventloop",
        "backoff",
        "jsonbytes",
        "failure_reasons",
        "number_ranges",
        "job_query",
        "escape",
        "rights",
        "audit",
        "usage",
        "rates",
        "units",
    }
)

# By room: other rooms, or single modules of them.
MAY_IMPORT: dict[str, frozenset[str]] = {
    "wire": frozenset(),
    "engine": frozenset(),
    "store": frozenset(),
    "runtime": frozenset({"engine", "store"}),
    "admin": frozenset({"engine", "runtime"}),
    "cluster": frozenset({"engine", "store", "runtime"}),
    "doors": frozenset({"wire", "engine", "runtime", "admin"}),
    "server": frozenset({"wire", "engine", "store", "runtime", "admin", "doors", "cluster"}),
    "maintenance": frozenset({"wire", "engine", "store", "server"}),
    "client": frozenset({"wire"}),
    "app": frozenset({"client"}),
    "otel": frozenset({"app"}),  # OpenTelemetry, for apps
    "outbox": frozenset({"app", "client"}),
    "testing": frozenset({"app", "client"}),  # for users' own tests
    # The command line makes commands from the table of verbs, which is plain data and imports no other module.
    "cli": frozenset({"client", "server", "maintenance", "app", "outbox", "admin.verbs"}),
    **{plain: frozenset() for plain in PLAIN},
    "__init__": frozenset({"client", "app"}),  # the version, and the library's names for type checkers
    "__main__": frozenset({"cli"}),  # the way into the command
}


def room_of(parts: tuple[str, ...]) -> str:
    """The room of a module given by the parts of its dotted name below the package."""
    return parts[0] if parts else "__init__"


def module_parts(package: Path, path: Path) -> tuple[str, ...]:
    """`doors/gearman/__init__.py` is `("doors", "gearman")`, and the package's own `__init__.py` is `()`."""
    parts = path.relative_to(package).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def imported_modules(tree: ast.Module, parts: tuple[str, ...], is_package: bool) -> Iterator[tuple[int, str]]:
    """Every module of ours that the source names in an import, as `room.module`, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _modules_below_package(node.lineno, tuple(alias.name.split(".")), ())
        elif isinstance(node, ast.ImportFrom):
            target = _absolute(node, parts, is_package)
            names = tuple(alias.name for alias in node.names)
            yield from _modules_below_package(node.lineno, target, names)


def _absolute(node: ast.ImportFrom, parts: tuple[str, ...], is_package: bool) -> tuple[str, ...]:
    named = tuple(node.module.split(".")) if node.module else ()
    if not node.level:
        return named
    here = (PACKAGE, *parts)
    climb = node.level - is_package
    return (*here[: len(here) - climb], *named)


def _modules_below_package(line: int, target: tuple[str, ...], names: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """`from geartrain import engine` and `from geartrain.admin import verbs` name a module after the import."""
    if target[:1] != (PACKAGE,):
        return
    if len(target) == 1:
        yield from ((line, name) for name in names if name in MAY_IMPORT)
    elif len(target) == 2 and names:
        yield from ((line, f"{target[1]}.{name}") for name in names)
    else:
        yield line, ".".join(target[1:])


def violations(package: Path) -> Iterator[str]:
    """One line for every import that the table does not allow, and for every room that it does not know."""
    for path in sorted(package.rglob("*.py")):
        parts = module_parts(package, path)
        room = room_of(parts)
        if room not in MAY_IMPORT:
            yield f"{path}:1: `{room}` is not in the table of rooms; add it there and in ARCHITECTURE"
            continue
        allowed = MAY_IMPORT[room] | PLAIN | {room}
        tree = ast.parse(path.read_bytes(), str(path))
        for line, target in imported_modules(tree, parts, path.stem == "__init__"):
            target_room = target.partition(".")[0]
            if target_room not in allowed and target not in allowed:
                others = ", ".join(sorted(allowed - {room}))
                yield f"{path}:{line}: `{room}` may not import `{target_room}`; it may import {others}"


def main(arguments: list[str]) -> int:
    package = Path(arguments[0]) if arguments else Path(__file__).parent.parent / "src" / PACKAGE
    if not package.is_dir():
        print(f"{package} is not a folder", file=sys.stderr)
        return 2
    found = list(violations(package))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
