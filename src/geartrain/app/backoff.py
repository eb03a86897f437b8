"""How long to wait before a task is tried again."""

import dataclasses
import random
from collections.abc import Callable


@dataclasses.dataclass(frozen=True, slots=True)
class Backoff:
    """Waits that grow by `factor` up to `cap`, each drawn between zero and its bound so that crowds spread out.

    >>> steady = Backoff(base=2, factor=3, cap=10, jitter=False)
    >>> [steady.after(attempt) for attempt in (1, 2, 3, 1000)]
    [2.0, 6.0, 10.0, 10.0]
    """

    base: float = 1.0  # seconds: the bound of the first wait
    factor: float = 2.0
    cap: float = 600.0
    jitter: bool = True

    def __post_init__(self) -> None:
        if self.base < 0 or self.factor < 1 or self.cap < 0:
            raise ValueError(f"a backoff needs base >= 0, factor >= 1 and cap >= 0: {self}")

    def after(self, attempt: int, draw: Callable[[float, float], float] = random.uniform) -> float:
        """The seconds to wait after this attempt failed; the first attempt is 1."""
        bound = self._bound(attempt)
        return draw(0.0, bound) if self.jitter else bound

    def _bound(self, attempt: int) -> float:
        try:
            return min(float(self.cap), self.base * float(self.factor) ** (attempt - 1))
        except OverflowError:
            return float(self.cap)


def backoff_of(asked: Backoff | float) -> Backoff:
    """A plain number is the base of an ordinary backoff."""
    return asked if isinstance(asked, Backoff) else Backoff(base=float(asked), cap=max(600.0, float(asked)))
