"""Changes of Python files below a folder, for `geartrain work --reload`."""

import asyncio
import os
from collections.abc import Iterator
from typing import Final

_SECONDS: Final = 0.5  # between two looks
_LEFT_OUT: Final = frozenset({"__pycache__", "node_modules", "site-packages", "venv"})


class SourceFiles:
    """The Python files below a folder, without hidden folders and installed packages."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._times = self._look()

    async def change(self) -> str:
        """Wait until a file is changed, added or removed, and return its path."""
        while True:
            await asyncio.sleep(_SECONDS)
            before, self._times = self._times, self._look()
            changed = {path for path, _ in before.items() ^ self._times.items()}
            if changed:
                return os.path.relpath(min(changed), self._folder)

    def _look(self) -> dict[str, int]:
        return dict(_files(self._folder))


def _files(folder: str) -> Iterator[tuple[str, int]]:
    """Each Python file with the time of its last change."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return  # removed, or not readable
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if not entry.name.startswith(".") and entry.name not in _LEFT_OUT:
                yield from _files(entry.path)
        elif entry.name.endswith(".py"):
            try:
                yield entry.path, entry.stat().st_mtime_ns
            except OSError:
                continue  # removed meanwhile
