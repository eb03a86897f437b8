"""A job of another server that waits, and how files begin that are something else than a queue of that server."""

from pathlib import Path
from typing import Final, NamedTuple

from geartrain.errors import StoreError
from geartrain.model import Priority

HEAD_SIZE: Final = 64
SQLITE: Final = b"SQLite format 3\0"

# How files begin, and what to do with them.
_OTHERS: Final[tuple[tuple[bytes, str], ...]] = (
    (b"\x1f\x8b", "compressed with gzip; unpack it first"),
    (b"(\xb5/\xfd", "compressed with zstd; unpack it first"),
    (b'{"geartrain":"dump"', "a dump of Geartrain; use `geartrain load`"),
)

OtherFiles = tuple[tuple[bytes, str], ...]


class QueuedJob(NamedTuple):
    """A job of another server that waits."""

    function: bytes
    unique: bytes  # as its client gave it
    payload: bytes
    priority: Priority = Priority.NORMAL
    run_at: float = 0.0  # epoch seconds; 0: at once
    timeout: float = 0.0  # seconds that a worker may take; 0: no limit
    steps: int = 0  # sum of the steps with which workers rescheduled it


def head_of(path: Path, wanted: str, others: OtherFiles = ()) -> bytes:
    """How a file begins; a StoreError if it is not `wanted` but one of `others`, or cannot be read."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_SIZE)
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from None
    for magic, description in (*others, *_OTHERS):
        if head.startswith(magic):
            raise StoreError(f"{path} is not {wanted}: it is {description}")
    if not head:
        raise StoreError(f"{path} is empty")
    return head
