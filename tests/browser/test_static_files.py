"""Rules for the dashboard's files that need no browser."""

import re
from pathlib import Path

from geartrain.doors.http import static_files

PAGES = Path(__file__).parents[2] / "src" / "geartrain" / "doors" / "http" / "dashboard"
SCRIPTS = sorted(PAGES.rglob("*.js"))
IMPORT = re.compile(r'^(?:import|export)\b[^;]*?from "(?P<path>[^"]+)";|^import "(?P<bare>[^"]+)";', re.MULTILINE)


def imports_of(script: Path) -> set[Path]:
    return {(script.parent / found["path"]).resolve() for found in IMPORT.finditer(script.read_text())}


def test_every_module_is_preloaded_and_imported() -> None:
    page = (PAGES / "index.html").read_text()
    preloaded = {PAGES / path for path in re.findall(r'rel="modulepreload" href="([^"]+)"', page)}
    used = set().union(*(imports_of(script) for script in SCRIPTS))
    generated = PAGES / static_files.VERBS_MODULE
    assert preloaded == used == {generated, *(script for script in SCRIPTS if script.parent != PAGES)}


def test_data_never_becomes_markup() -> None:
    dangerous = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|eval\(|new Function")
    found = [f"{script.name}: {match[0]}" for script in SCRIPTS for match in dangerous.finditer(script.read_text())]
    assert found == []


def test_the_page_has_nothing_inline_and_nothing_foreign() -> None:
    for file in (PAGES / "index.html", *SCRIPTS, *PAGES.rglob("*.css")):
        text = file.read_text()
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=\"", text), file
        foreign = [url for url in re.findall(r"https?://[^\s\"')]+", text) if url != "http://www.w3.org/2000/svg"]
        assert foreign == [], file
    assert re.findall(r"<script(?![^>]*\bsrc=)", (PAGES / "index.html").read_text()) == []


# Text and background, by the names of the tokens.
PAIRS = [
    (text, ground)
    for text in ("ink", "ink-soft", "accent", "scheduled", "queued", "running", "done", "failed", "dead", "cancelled")
    for ground in ("ground", "surface", "raised", "hover")
] + [
    ("accent-ink", "accent"),
    ("ink", "sunken"),
    ("ink-soft", "sunken"),
    *((text, "accent-soft") for text in ("ink", "ink-soft", "accent", "failed", "queued", "dead")),
]


def luminance(colour: str) -> float:
    """Of a colour written #rrggbb, as the accessibility guidelines define it."""
    shares = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    red, green, blue = (share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_text_can_be_read_in_both_themes() -> None:
    tokens = (PAGES / "style" / "tokens.css").read_text()
    colours = {name: both for name, *both in re.findall(r"--([a-z-]+): light-dark\((#\w{6}), (#\w{6})\)", tokens)}
    too_faint = []
    for text, ground in PAIRS:
        for theme in (0, 1):
            first, second = sorted((luminance(colours[text][theme]), luminance(colours[ground][theme])))
            if (second + 0.05) / (first + 0.05) < 4.5:
                too_faint.append((text, ground, ("light", "dark")[theme], round((second + 0.05) / (first + 0.05), 2)))
    assert too_faint == []
