"""What a check finds: all is well, something to know about, or something to mend."""

import enum
from typing import NamedTuple


class Level(enum.StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"  # it works, and somebody should know
    PROBLEM = "problem"  # it does not work, or jobs are in danger


class Finding(NamedTuple):
    """One line of the report."""

    check: str
    level: Level
    text: str  # what was found, and what that means
    advice: str = ""  # what to do; empty if nothing has to be done


class Findings:
    """Makes the findings of one check.

    >>> Findings("ports").ok("they are free")
    Finding(check='ports', level=<Level.OK: 'ok'>, text='they are free', advice='')
    """

    def __init__(self, check: str) -> None:
        self._check = check

    def ok(self, text: str) -> Finding:
        return Finding(self._check, Level.OK, text)

    def warning(self, text: str, advice: str) -> Finding:
        return Finding(self._check, Level.WARNING, text, advice)

    def problem(self, text: str, advice: str) -> Finding:
        return Finding(self._check, Level.PROBLEM, text, advice)
