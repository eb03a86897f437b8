"""A disk that remembers what has reached it: what a power cut at any moment would leave.

Killing a process loses nothing that it wrote, because the system still has it. A power cut loses what was not
synced; of that, any part of any write may have reached the disk, in any order.
"""

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

NAME = "power"
SYSTEM = "unix"
SECTOR = 512  # what a disk writes whole or not at all

Write = tuple[int, bytes]  # an offset and what was written there; b"" is a truncation to that offset


class Content:
    """One file: what is surely on the disk, and what was written since the last sync."""

    def __init__(self, synced: bytes = b"") -> None:
        self.synced = bytearray(synced)
        self.unsynced: list[Write] = []

    def sync(self) -> None:
        for write in self.unsynced:
            _apply(self.synced, write)
        self.unsynced.clear()

    def after_cut(self, chance: random.Random, keep: float) -> bytes:
        """What a power cut leaves, if each sector that was not synced has this chance to be there."""
        left = bytearray(self.synced)
        for offset, data in self.unsynced:
            for start in range(0, len(data) or 1, SECTOR):
                if chance.random() < keep:
                    _apply(left, (offset + start, data[start : start + SECTOR]))
        return bytes(left)


def _apply(content: bytearray, write: Write) -> None:
    offset, data = write
    if not data:
        del content[offset:]
        return
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


class PowerDisk(apsw.VFS):
    """SQLite's default VFS from the moment it is made until `remove`."""

    def __init__(self) -> None:
        self.contents: dict[str, Content] = {}
        self.each: Callable[[], None] | None = None  # called before every write and every sync
        super().__init__(NAME, SYSTEM, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> "PowerFile":  # noqa: N802
        path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        if path not in self.contents:
            self.contents[path] = Content(Path(path).read_bytes() if os.path.exists(path) else b"")
        return PowerFile(self, name, flags, self.contents[path])

    def xDelete(self, name: str, sync: bool) -> None:  # noqa: N802
        self.contents.pop(name, None)
        super().xDelete(name, sync)

    def cut(self, folder: Path, chance: random.Random, keep: float) -> Path:
        """Write what a power cut would leave of the files into a folder; the path of the first of them."""
        folder.mkdir()
        for path, content in self.contents.items():
            (folder / Path(path).name).write_bytes(content.after_cut(chance, keep))
        return folder / Path(next(iter(self.contents))).name

    def remove(self) -> None:
        self.unregister()


class PowerFile(apsw.VFSFile):
    """One file of it."""

    def __init__(self, disk: PowerDisk, name: Any, flags: list[int], content: Content) -> None:
        self._disk = disk
        self._content = content
        super().__init__(SYSTEM, name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._before()
        super().xWrite(data, offset)
        self._content.unsynced.append((offset, bytes(data)))

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self._before()
        super().xTruncate(size)
        self._content.unsynced.append((size, b""))

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._before()
        super().xSync(flags)
        self._content.sync()

    def _before(self) -> None:
        if self._disk.each is not None:
            self._disk.each()
