"""Prometheus' text format, version 0.0.4: families of samples, written line by line."""

from collections.abc import Iterable, Sequence
from typing import Final

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def label(value: bytes) -> str:
    """Bytes as the value of a label: UTF-8 as it is, other bytes as `\\xff`.

    >>> label(b'say "hi"'), label(b"caf\\xc3\\xa9"), label(b"\\xff")
    ('say \\\\"hi\\\\"', 'café', '\\\\\\\\xff')
    """
    return value.decode("utf-8", "backslashreplace").replace("\0", "\\x00").translate(_ESCAPES)


class Family:
    """One metric, with all its samples."""

    def __init__(self, name: str, kind: str, help: str) -> None:
        self.name = name
        self._lines = [f"# HELP {name} {help}", f"# TYPE {name} {kind}"]

    def add(self, value: float, labels: str = "", suffix: str = "") -> None:
        """One sample; `labels` is what stands between the braces."""
        braces = f"{{{labels}}}" if labels else ""
        self._lines.append(f"{self.name}{suffix}{braces} {number(value)}")

    def add_many(self, samples: Iterable[tuple[str, float]]) -> None:
        """Samples by their labels."""
        name = self.name
        self._lines += [f"{name}{{{labels}}} {number(value)}" for labels, value in samples]

    def add_histogram(self, bounds: Sequence[float], counts: Sequence[int], sum: float) -> None:
        """Counts by bucket, the last one for what is above every bound."""
        total = 0
        for bound, count in zip(bounds, counts, strict=False):
            total += count
            self.add(total, f'le="{bound:g}"', "_bucket")
        total += counts[-1]
        self.add(total, 'le="+Inf"', "_bucket")
        self.add(sum, suffix="_sum")
        self.add(total, suffix="_count")

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


def number(value: float) -> str:
    """Whole numbers without a point.

    >>> number(3.0), number(0.25)
    ('3', '0.25')
    """
    return str(int(value)) if value == int(value) else repr(float(value))
