"""Writes docs/protocols/crossing.md from what the crossing tests observed, or says with --check that it is out of date.

The observations are in docs/protocols/crossing.json, and the tests fail when they observe something else. After a
change that is meant, renew both:

    GEARTRAIN_CROSSING_REPORT=$PWD/docs/protocols/crossing.json python -m pytest tests/crossing
    python tools/crossing_doc.py [--check]
"""

import json
import operator
from collections.abc import Callable
from pathlib import Path

import written_page

FOLDER = Path(__file__).parent.parent / "docs" / "protocols"
PAGE = FOLDER / "crossing.md"
OBSERVATIONS = FOLDER / "crossing.json"

Pair = dict[str, str]  # what was observed, by aspect
Pairs = dict[str, dict[str, Pair]]  # by client and worker

# The order of rows and columns; what is observed of others comes after them.
ORDER = ("gearman", "danga", "periodic", "memodb", "gearmonkey", "http")
NAMES = {
    "gearman": "Gearman",
    "danga": "danga",
    "periodic": "Periodic",
    "memodb": "MemoDB",
    "gearmonkey": "GearMonkey",
    "http": "HTTP",
}

HEAD = """\
<!-- Written by tools/crossing_doc.py from crossing.json, which the tests in tests/crossing observed. -->
# Crossing

A job that enters by any door can be run by a worker behind any other. To choose a protocol is to choose a URL; the rest
of a program stays the same, also where client and worker are connected to different servers of a
[cluster](../cluster.md). What one of the two protocols has no word for is lost on the way, and this page says
what that is. It was written by the tests that submit by each protocol and run by each: they fail when it is not true.

**Never lost, between no pair:** the payload and the result, byte by byte, also when they are empty or have eight
megabytes; and the result of a job whose worker was lost in the middle of it, since another worker runs it again. A lost
worker is noticed when its connection closes, one of HTTP when it has been silent for its lease.
"""

LOSSES_HEAD = """
## What is lost on the way
Rows submit, columns run. What is listed is what a worker may want to say, and the client does not hear.

"""

# What a client misses, by aspect and what was observed of it; nothing where nothing is missed.
LOSSES = {
    "failure": {
        "never heard": "failures",
        "heard when it is given up": "failures (until given up)",
        "heard": "why it failed",
        "heard with words": "",
        "heard with words and code": "",
    },
    "progress": {"heard": "", "not heard": "progress"},
    "data": {"heard": "", "not heard": "parts of the result"},
    "warning": {"heard": "", "not heard": "warnings"},
}

# Aspects in detail: a heading, what was tried, and what the words in its table mean.
SECTIONS = {
    "failure": (
        "When a job fails",
        "The worker fails with a text and the code 77.",
        {
            "heard": "The client hears that it failed, but not why.",
            "heard with words": "The client hears the worker's text. Its code is not passed on.",
            "heard with words and code": "The client hears the text and the code.",
            "heard when it is given up": "The worker cannot say that a job failed for good: it goes back, is tried "
            "again, and the client hears of a failure when `max_attempts` are used up.",
            "never heard": "The client hears nothing, and gives up when it has waited for long enough.",
        },
    ),
    "unique": (
        "Jobs with the same unique key",
        "Two jobs with the same key are submitted before there is a worker for them.",
        {
            "shared": "There is one job, with the first payload.",
            "replaced": "There is one job, with the second payload.",
            "cannot be said": "The protocol has no unique keys.",
        },
    ),
    "key": (
        "Whether the worker sees the unique key",
        "",
        {
            "seen": "The worker is told the key.",
            "not seen": "The key counts, but the worker is not told it.",
            "cannot be said": "There is none.",
        },
    ),
    "priority": (
        "Priorities",
        "A low, a normal and a high job are submitted in this order before there is a worker for them.",
        {
            "kept": "They are run in the order of their priorities.",
            "cannot be said": "Every job has normal priority. Workers of every protocol take high ones first.",
        },
    ),
    "partition": (
        "Partitions",
        "A tenant has three jobs and another one has one, submitted last. What Gearman has no field for, the library "
        "and the command line say with the [control function](../admin.md#the-control-function); stock clients "
        "have their partition [read from the unique key](../limits.md#partitions-tenants-take-turns).",
        {
            "take turns": "The one job is the second to run.",
            "cannot be said": "The jobs run in the order of their submission, unless the partition is read from their "
            "unique keys. Limits hold whoever submits and whoever runs.",
        },
    ),
    "after": (
        "Jobs that wait for others, and workflows",
        "A job of high priority [waits](../workflows.md) for one of low priority.",
        {
            "waits": "It runs after it, whoever runs it. Workers of every protocol run such jobs, and workflows.",
            "cannot be said": "Submit such jobs and workflows over HTTP or Gearman.",
        },
    ),
    "background": (
        "Jobs that nobody waits for",
        "",
        {
            "run": "It is run.",
            "run, and its result kept": "It is run, and the client can ask for its result (up to `result_max`).",
            "cannot be said": "There are none: a job lives as long as its client waits.",
        },
    ),
    "client lost": (
        "When a client is lost",
        "It waited for two jobs, of which one was running and the other one was queued.",
        {
            "dropped unless it runs": "The queued job is dropped. The running one is finished, and nobody hears of it.",
            "run all the same": "Both are run: a client of this protocol does not wait for a job, it looks at it.",
        },
    ),
}


def rendered(pairs: Pairs) -> str:
    """The page."""
    protocols = sorted(pairs, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))
    parts = [HEAD, LOSSES_HEAD, _table(pairs, protocols, _losses)]
    for aspect, (heading, story, meanings) in SECTIONS.items():
        parts.append(f"\n## {heading}\n" + (f"{story}\n\n" if story else ""))
        parts.append(_table(pairs, protocols, operator.itemgetter(aspect)))
        observed = {pair[aspect] for row in pairs.values() for pair in row.values()}
        parts.append("\n" + "".join(f"- **{word}:** {text}\n" for word, text in meanings.items() if word in observed))
    return "".join(parts)


def complaints(pairs: Pairs) -> list[str]:
    """What the page cannot say."""
    problems = []
    for client, row in pairs.items():
        if row.keys() != pairs.keys():
            problems.append(f"{client} was not tried with every other")
        for worker, pair in row.items():
            for aspect in (*LOSSES, *SECTIONS):
                known = LOSSES.get(aspect, {}).keys() | (SECTIONS[aspect][2].keys() if aspect in SECTIONS else set())
                if pair.get(aspect) not in known:
                    problems.append(f"{client} to {worker}: nothing is known of {aspect} {pair.get(aspect)!r}")
            for aspect, right in (("result", "unchanged"), ("large", "unchanged"), ("worker lost", "run by another")):
                if pair.get(aspect) != right:
                    problems.append(f"{client} to {worker}: {aspect} is {pair.get(aspect)!r}, and the page says else")
    return problems


def _losses(pair: Pair) -> str:
    lost = [words[pair[aspect]] for aspect, words in LOSSES.items()]
    return ", ".join(filter(None, lost)) or "nothing"


def _table(pairs: Pairs, protocols: list[str], cell: Callable[[Pair], str]) -> str:
    """Rows submit, columns run; one column if it makes no difference who runs."""
    names = [NAMES.get(name, name) for name in protocols]
    if all(len({cell(pair) for pair in pairs[client].values()}) == 1 for client in protocols):
        rows = [
            f"| **{name}** | {cell(pairs[client][client])} |" for client, name in zip(protocols, names, strict=True)
        ]
        return "\n".join(["| submitted by | whoever runs it |", "|---|---|", *rows]) + "\n"
    lines = [f"| | {' | '.join(f'to {name}' for name in names)} |", "|---" * (len(names) + 1) + "|"]
    for client, name in zip(protocols, names, strict=True):
        lines.append(f"| **{name}** | {' | '.join(cell(pairs[client][worker]) for worker in protocols)} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """The page; a ValueError if it would say something else than was observed."""
    pairs: Pairs = json.loads(OBSERVATIONS.read_text(encoding="utf-8"))
    problems = complaints(pairs)
    if problems:
        raise ValueError("\n".join(problems))
    return rendered(pairs)


if __name__ == "__main__":
    raise SystemExit(written_page.main(PAGE, page))
