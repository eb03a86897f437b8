"""The command, and the store that it finds."""

from tests.unit.cli.conftest import held, path, run

__all__ = ["held", "path", "run"]
