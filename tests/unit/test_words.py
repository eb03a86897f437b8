"""One vocabulary: every module and class begins with a word of the glossary or of plain trade English.

A name that fails here is either a coined word, which needs a definition in docs/glossary.md, or an ordinary word that
is used for the first time, which belongs into `ordinary_words.txt` beside this file. Prefer a word that is there.
"""

import ast
import functools
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "geartrain"
GLOSSARY = ROOT / "docs" / "glossary.md"
ORDINARY = Path(__file__).with_name("ordinary_words.txt")

# Classes that share a name because they stand behind one interface, or are the same part of twin modules.
TWINS = {
    "AnswerReader": "each client-side codec's",
    "AsyncClient": "the public one, and the one on Redis",
    "AsyncWorker": "the public one, and the one on Redis",
    "Client": "one for each protocol, one on Redis, and the public one",
    "Clock": "the server's, and the one that users' tests set",
    "Command": "a row of each door's table of commands",
    "FunctionHandler": "of a row of each door's table of commands that is a function",
    "Handler": "a row of each door's table of commands",
    "Job": "the model's, and the public ones of the library and on Redis",
    "LogTable": "that of SQLite, and that of PostgreSQL",
    "Options": "each door's, and the public flags of a submission on Redis",
    "Reader": "each server-side codec's",
    "RecordTable": "that of SQLite, and that of PostgreSQL",
    "StreamPipe": "the server's and the client's end of one transport",
    "Worker": "one for each protocol, one on Redis, the public one, and the engine's base class",
}


def modules() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py")) if path.stem not in ("__init__", "__main__")]


@functools.cache
def classes() -> dict[str, list[str]]:
    """Where each class is defined, by name."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(PACKAGE)))
    return places


def first_word(name: str) -> str:
    """The word that a name begins with.

    >>> first_word("_JobQueue"), first_word("async_client"), first_word("HTTPError")
    ('job', 'async', 'http')
    """
    word = re.match(r"_*([A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+)", name)
    assert word is not None, name
    return word.group(1).lower()


def glossary_words() -> set[str]:
    """The first word of each term that the glossary defines: `**Crew.**`, `**Coalesce, replace.**`."""
    terms = re.findall(r"^\*\*(.+?)\.\*\*", GLOSSARY.read_text(), re.MULTILINE)
    return {part.split()[0].lower() for term in terms for part in term.split(",")}


def ordinary_words() -> list[str]:
    return ORDINARY.read_text().split()


def test_every_name_begins_with_a_known_word() -> None:
    known = glossary_words() | set(ordinary_words())
    names = {path.stem: str(path.relative_to(PACKAGE)) for path in modules()}
    names |= {name: places[0] for name, places in classes().items()}
    assert {name: place for name, place in names.items() if first_word(name) not in known} == {}


def test_the_list_of_ordinary_words_is_sorted_and_has_no_word_too_many() -> None:
    used = {first_word(name) for name in (*(path.stem for path in modules()), *classes())}
    words = ordinary_words()
    assert words == sorted(set(words))
    assert set(words) - used == set()
    assert set(words) & glossary_words() == set()


@pytest.mark.parametrize(("name", "places"), [entry for entry in classes().items() if len(entry[1]) > 1])
def test_a_class_name_has_one_meaning(name: str, places: list[str]) -> None:
    assert name in TWINS, f"{name} is defined in {', '.join(places)}"


def test_twins_are_twins() -> None:
    assert {name for name in TWINS if len(classes()[name]) < 2} == set()
