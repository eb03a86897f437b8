"""The programs of docs/library.md and docs/workflows.md, run as they are written; only the ports are ours."""

import contextlib
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.library.conftest import serve
from tests.support import process

DOCS = Path(__file__).parents[3] / "docs"
GUIDES = (DOCS / "library.md").read_text() + (DOCS / "workflows.md").read_text()
BLOCK = re.compile(r"^```python\n# (\S+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
EXPECTED = re.compile(r"  # -> (.*)$", re.MULTILINE)
PROGRAMS = dict(BLOCK.findall(GUIDES))
WORKERS = sorted(name for name in PROGRAMS if "worker" in name)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The programs as files, and the guide's workers at work."""
    folder = tmp_path_factory.mktemp("guide")
    with serve() as first, serve() as second, contextlib.ExitStack() as stack:
        for name, source in PROGRAMS.items():
            (folder / name).write_text(source.replace(":4730", f":{first.port}").replace(":4731", f":{second.port}"))
        (folder / "elsewhere.py").write_text(PROGRAMS["worker.py"].replace(":4730", f":{second.port}"))
        workers = []
        for name in (*WORKERS, "elsewhere.py"):
            place = tmp_path_factory.mktemp("worker")
            workers.append(process.Process([sys.executable, str(folder / name)], place))
            stack.callback(workers[-1].kill)
        yield folder
        for worker in workers:
            worker.process.send_signal(signal.SIGTERM)
        for worker in workers:
            assert worker.wait() in (0, -signal.SIGTERM), worker.account()  # the latter: it had hardly begun
            assert worker.stderr == "", worker.account()


@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - set(WORKERS)))
def test_a_program_prints_what_the_guide_says(name: str, home: Path, tmp_path: Path) -> None:
    running = process.Process([sys.executable, "-W", "error", str(home / name)], tmp_path)
    try:
        assert running.wait() == 0, running.account()
        assert running.lines == EXPECTED.findall(PROGRAMS[name])
    finally:
        running.kill()


def test_every_program_was_found() -> None:
    assert len(PROGRAMS) == GUIDES.count("```python")
