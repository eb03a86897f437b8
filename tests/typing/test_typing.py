"""The types of the public API, as users' type checkers see them: mypy --strict, and pyright in its strict mode.

The other files of this folder are read and never run. What a checker has to refuse carries a comment with the names of
the rules that it may refer to: `# refused: arg-type reportArgumentType`. Pyright's begin with `report`, the others are
mypy's. No other line may be refused, and each of these lines must be.
"""

import json
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FILES = sorted(path for path in HERE.glob("*.py") if path != Path(__file__))

Complaints = dict[tuple[str, int], set[str]]  # the rules, by file and line

_EXPECTED = re.compile(r"# refused: (.+)")
_OF_MYPY = re.compile(r"(.+?):(\d+): error: .*\[([a-z-]+)\]")
_PYRIGHT_SETTINGS = {
    "typeCheckingMode": "strict",
    "pythonVersion": "3.11",
    "extraPaths": [str(ROOT / "src")],
    "reportDeprecated": "none",  # about the standard library, and other functions with each version of pyright
}


def mypy(folder: Path) -> Complaints:
    options = ["--strict", "--no-error-summary", "--hide-error-context", "--no-pretty", "--config-file="]
    command = ["mypy", *options, *map(str, sorted(folder.glob("*.py")))]
    lines = [line for line in output(command).splitlines() if ": error: " in line]
    matches = [_OF_MYPY.fullmatch(line) for line in lines]
    assert None not in matches, lines
    return by_line((Path(match[1]).name, int(match[2]), match[3]) for match in matches if match is not None)


def pyright(folder: Path) -> Complaints:
    settings = folder / "pyrightconfig.json"
    settings.write_text(json.dumps(_PYRIGHT_SETTINGS))
    answer = output(["pyright", "--outputjson", "--pythonpath", sys.executable, "--project", str(settings)])
    return by_line(
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1, each.get("rule", each["message"]))
        for each in json.loads(answer)["generalDiagnostics"]
    )


def output(command: Sequence[str]) -> str:
    """What a checker prints; both exit with 1 if they refuse something."""
    run = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert run.returncode in (0, 1), run.stdout + run.stderr
    return run.stdout


def by_line(complaints: Iterable[tuple[str, int, str]]) -> Complaints:
    found: Complaints = defaultdict(set)
    for file, line, rule in complaints:
        found[file, line].add(rule)
    return found


def expected(folder: Path, of_pyright: bool) -> Complaints:
    """What the comments say, for one of the checkers."""
    return by_line(
        (path.name, number, rule)
        for path in folder.glob("*.py")
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if (comment := _EXPECTED.search(line))
        for rule in comment[1].split()
        if rule.startswith("report") == of_pyright
    )


def unexpected(found: Complaints, wanted: Complaints) -> Complaints:
    """Complaints without a comment, lines with a comment that were accepted, and complaints of another kind."""
    lines = found.keys() | wanted.keys()
    return {line: found[line] for line in lines if not found[line] or found[line] - wanted[line]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files of this folder, where no settings of ours are near: users have their own."""
    for path in FILES:
        shutil.copy(path, tmp_path)
    return tmp_path


CHECKERS = pytest.mark.parametrize("checker", [mypy, pyright])


@CHECKERS
def test_every_claim_holds_and_every_mistake_is_noticed(checker: Callable[[Path], Complaints], folder: Path) -> None:
    assert unexpected(checker(folder), expected(folder, checker is pyright)) == {}


@CHECKERS
@pytest.mark.parametrize(
    "line",
    ["f.bind('x')", "assert_type(f.call_sync(1), str)", "f.bind(1)  # refused: arg-type reportArgumentType"],
    ids=["mistake", "wrong claim", "accepted"],
)
def test_what_is_not_as_the_comments_say_is_found(
    checker: Callable[[Path], Complaints], tmp_path: Path, line: str
) -> None:
    task = "from typing import assert_type\nfrom geartrain import App\n\n@App('a').task\ndef f(a: int) -> int: ...\n"
    (tmp_path / "wrong.py").write_text(f"{task}\nassert_type(f(1), int)\n{line}\n")
    found = unexpected(checker(tmp_path), expected(tmp_path, checker is pyright))
    assert ("wrong.py", 8) in found
