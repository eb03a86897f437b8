"""The jobs of a soak: the payload says which job it is and what its worker has to do."""

import random
from typing import NamedTuple

FUNCTION = "soak"
# No worker completes a job of this function: whoever gets it disconnects.
POISON = "soak-poison"
FOREGROUND = "foreground-"  # how the keys of foreground jobs begin
_FAILING = 0.03
_LARGE = 0.01
_LONGEST_WORK = 30  # milliseconds
_LARGEST = 64 * 1024


class SoakJob(NamedTuple):
    """One job. Its key is its name in every account."""

    key: str
    milliseconds: int
    fails: bool = False
    padding: int = 0

    @property
    def payload(self) -> bytes:
        """
        >>> SoakJob("http-1", 5).payload, SoakJob.parse(b"http-1 5 0 xxx")
        (b'http-1 5 0 ', SoakJob(key='http-1', milliseconds=5, fails=False, padding=3))
        """
        return b"%b %d %d %b" % (self.key.encode(), self.milliseconds, self.fails, b"x" * self.padding)

    @classmethod
    def parse(cls, payload: bytes) -> "SoakJob":
        key, milliseconds, fails, padding = payload.split(b" ", 3)
        return cls(key.decode(), int(milliseconds), fails == b"1", len(padding))


def random_job(key: str, chance: random.Random, may_fail: bool = True) -> SoakJob:
    """Most are short and succeed."""
    fails = chance.random() < _FAILING
    padding = chance.randrange(_LARGEST) if chance.random() < _LARGE else 0
    return SoakJob(key, chance.randrange(_LONGEST_WORK), fails and may_fail, padding)
