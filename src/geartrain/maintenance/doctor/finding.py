"""Findings: the results of a check, with advice."""

import enum
from typing import NamedTuple


class Level(enum.StrEnum):
    """The severity of a finding."""

    OK = "ok"
    WARNING = "warning"  # it works, but an operator should know
    PROBLEM = "problem"  # it does not work, or jobs are at risk


class Finding(NamedTuple):
    """One line of the report."""

    check: str
    level: Level
    text: str
    advice: str = ""  # what to do; empty if nothing needs to be done


class Check(NamedTuple):
    """A check by its name; it makes findings.

    >>> Check("ports").ok("gearman://127.0.0.1:4730 is free")
    Finding(check='ports', level=<Level.OK: 'ok'>, text='gearman://127.0.0.1:4730 is free', advice='')
    """

    name: str

    def ok(self, text: str) -> Finding:
        return Finding(self.name, Level.OK, text)

    def warning(self, text: str, advice: str) -> Finding:
        return Finding(self.name, Level.WARNING, text, advice)

    def problem(self, text: str, advice: str) -> Finding:
        return Finding(self.name, Level.PROBLEM, text, advice)
