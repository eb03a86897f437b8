"""The audit file and its older parts, as logrotate leaves them, as if they were one file.

`audit.log.2.gz`, `audit.log.1` and `audit.log` are parts of one log, the newest without a suffix. With logrotate's
`dateext` the suffixes are dates: `audit.log-20261116.gz`. A position counts bytes from the beginning of the oldest part
that is left, uncompressed, so it stays the same when the log is rotated.
"""

import contextlib
import gzip
import os
import re
import shutil
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final, NamedTuple

_SUFFIX: Final = re.compile(r"(?:\.([0-9]{1,9})|-([0-9]{6,14}))(\.gz)?")
_SIZE: Final = struct.Struct("<I")  # at the end of a gzip file: the size of the contents, modulo 2**32
_IN_MEMORY: Final = 16 * 1024 * 1024  # bytes of a part that is uncompressed


class AuditPart(NamedTuple):
    """One file of the log."""

    path: Path
    begin: int  # its first position in the log
    size: int  # uncompressed

    @contextlib.contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """Its contents; an OSError if they cannot be read."""
        if self.path.suffix != ".gz":
            with self.path.open("rb") as file:
                yield file
            return
        with gzip.open(self.path) as compressed, tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
            try:
                shutil.copyfileobj(compressed, file)
            except EOFError as error:
                raise OSError(f"{self.path} is truncated") from error
            yield file


def parts(path: str) -> list[AuditPart]:
    """The files of the log, the oldest first. An OSError if the newest cannot be read."""
    found: list[AuditPart] = []
    begin = 0
    for file in [*_rotated(Path(path)), Path(path)]:
        try:
            size = _size(file)
        except FileNotFoundError:
            if str(file) == path:
                raise
            continue  # it was rotated or removed meanwhile
        found.append(AuditPart(file, begin, size))
        begin += size
    return found


def _rotated(path: Path) -> list[Path]:
    """The older files, the oldest first: by falling numbers, then by dates."""
    found: dict[tuple[int, int], Path] = {}
    for file in sorted(path.parent.iterdir()):
        match = _SUFFIX.fullmatch(file.name.removeprefix(path.name)) if file.name.startswith(path.name) else None
        if match is not None:
            order = (0, -int(match[1])) if match[1] else (1, int(match[2].ljust(14, "0")))
            found.setdefault(order, file)  # while logrotate compresses a file, both forms are there
    return [found[order] for order in sorted(found)]


def _size(path: Path) -> int:
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        if path.suffix != ".gz" or end < _SIZE.size:
            return end
        file.seek(-_SIZE.size, os.SEEK_END)
        return int(_SIZE.unpack(file.read(_SIZE.size))[0])
