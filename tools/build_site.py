"""Build the documentation site with Sphinx: `make docs`. A broken link, or a page that is not listed here, is an error.

    python tools/build_site.py [--output build/site]

The pages link to each other by their paths in the repository, so that forges show them rightly. On the site some are
elsewhere: the pages are copied to a folder, their links are changed, and Sphinx builds from there.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

ROOT: Final = Path(__file__).parent.parent
CONFIGURATION: Final = Path(__file__).with_name("site")
MARK: Final = ROOT / "src" / "geartrain" / "doors" / "http" / "dashboard" / "mark.svg"

# The navigation, by heading: pages below `docs`, or made from files of the repository.
NAVIGATION: Final = {
    "Start": (
        "install", "tutorial", "from-gearmand", "from-gearmonkey", "from-celery", "from-rq", "from-dramatiq",
        "from-procrastinate",
    ),
    "Guides": (
        "app", "observability", "web-frameworks", "outbox", "limits", "workflows", "library", "dashboard", "admin",
        "assistants", "security", "operations", "cluster", "cluster-operations",
    ),
    "Reference": (
        "command-line", "settings", "http", "metrics", "python-api", "rights-table", "dump-format",
        "protocols/gearman", "protocols/danga", "protocols/periodic", "protocols/memodb", "protocols/gearmonkey",
        "protocols/crossing",
    ),
    "Design": (
        "promises", "architecture", "performance", "performance-figures", "scale", "campaigns", "glossary",
        "adr/README",
    ),
    "Project": ("contributing", "changelog", "security-policy"),
}  # fmt: skip
# Files of the repository that are pages of the site.
PAGES: Final = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security-policy.md",
    "README.md": "index.md",
}
# Sections of the README that make the tutorial. A test walks through the first.
TUTORIAL: Final = ("A five-minute tour", "The command line", "Clients and workers in Python", "Tasks in Python")
# What the navigation has instead.
LEFT_OUT: Final = ("Two commands", "Where to read on")
DOWNLOADS: Final = ("deploy", "Containerfile", "LICENSE")

_LINK: Final = re.compile(r'(\]\(|src="|srcset="|href=")([^)\s"#:]+)(?=[)#"])')
_FENCE: Final = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def main() -> int:
    """Build the site; Sphinx's exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "site")
    output: Path = parser.parse_args().output
    with tempfile.TemporaryDirectory(prefix="geartrain-site-") as folder:
        source = Path(folder) / "source"
        prepare(source)
        command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "--fresh-env"]
        code = subprocess.run([*command, "-b", "html", str(source), str(output)], check=False).returncode
    if not code:
        print(f"{output}/index.html")
    return code


def prepare(source: Path) -> None:
    """Write everything that Sphinx reads to a new folder."""
    shutil.copytree(ROOT / "docs", source)
    for page in source.rglob("*.md"):
        name = str(page.relative_to(source))
        page.write_text(for_site(page.read_text(), f"docs/{name}", name))
    for page_name, text in _made_pages():
        (source / page_name).write_text(text)
    (source / "adr" / "README.md").write_text((source / "adr" / "README.md").read_text() + _decisions(source))
    shutil.copy(CONFIGURATION / "conf.py", source)
    (source / "static").mkdir()
    shutil.copy(CONFIGURATION / "site.css", source / "static")
    shutil.copy(MARK, source / "mark.svg")
    extra = source / "extra"
    shutil.copytree(ROOT / "docs" / "images", extra / "images")
    for download in DOWNLOADS:
        for folder in (source, extra):
            copy = shutil.copytree if (ROOT / download).is_dir() else shutil.copy
            copy(ROOT / download, folder / download)


def _made_pages() -> Iterator[tuple[str, str]]:
    readme = (ROOT / "README.md").read_text()
    for source, page in PAGES.items():
        text = (ROOT / source).read_text()
        if page == "index.md":
            text = "".join(part for title, part in sections(text) if title not in (*TUTORIAL, *LEFT_OUT)) + _contents()
        yield page, for_site(text, source, page)
    tour = "".join(part for title, part in sections(readme) if title in TUTORIAL)
    yield "tutorial.md", for_site(f"# Tutorial\n\n{tour}", "README.md", "tutorial.md")


def _contents() -> str:
    """The navigation, as Sphinx reads it."""
    trees = (
        "\n".join(["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```", ""])
        for caption, pages in NAVIGATION.items()
    )
    return "".join(trees)


def _decisions(source: Path) -> str:
    names = sorted(page.stem for page in (source / "adr").glob("0*.md"))
    return "\n".join(["", "```{toctree}", ":hidden:", "", *names, "```", ""])


def sections(text: str) -> Iterator[tuple[str, str]]:
    """The title and the text of each section of a page; the part before the first one has no title.

    >>> list(sections("# Page\\n\\n## One\\nText\\n"))
    [('', '# Page\\n\\n'), ('One', '## One\\nText\\n')]
    """
    for part in re.split(r"^(?=## )", text, flags=re.MULTILINE):
        title = part.partition("\n")[0].removeprefix("## ") if part.startswith("## ") else ""
        yield title, part


def for_site(text: str, source: str, page: str) -> str:
    """The text of a file of the repository, for its place on the site.

    >>> for_site("[more](docs/http.md#errors), [policy](SECURITY.md)", "README.md", "index.md")
    '[more](http.md#errors), [policy](security-policy.md)'
    >>> for_site("[board](../../deploy/board.json)", "docs/protocols/gearman.md", "protocols/gearman.md")
    '[board](../deploy/board.json)'
    """

    def changed(match: re.Match[str]) -> str:
        place = _place(_normal(PurePosixPath(source).parent / match[2]))
        return match[0] if place is None else match[1] + "../" * (len(PurePosixPath(page).parts) - 1) + place

    kept = _FENCE.findall(text)
    parts = [_LINK.sub(changed, part) for part in _FENCE.split(text)]
    # Sphinx has no lexer for diagrams.
    fences = [fence.replace("```mermaid", "```text", 1) for fence in kept] + [""]
    return "".join(part + fence for part, fence in zip(parts, fences, strict=True))


def _place(target: str) -> str | None:
    """Where a file of the repository is on the site; None: nowhere."""
    if target in PAGES:
        return PAGES[target]
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    return target if target.partition("/")[0] in DOWNLOADS else None


def _normal(path: PurePosixPath) -> str:
    """A path without `..`."""
    parts: list[str] = []
    for part in path.parts:
        if part != "..":
            parts.append(part)
        elif parts:
            parts.pop()
    return "/".join(parts)


if __name__ == "__main__":
    sys.exit(main())
