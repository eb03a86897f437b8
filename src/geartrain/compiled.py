"""The core in its two forms: compiled where a C compiler was at hand, and the same source as plain Python.

Compiled modules lie beside their sources, and Python takes the compiled one of the two. `GEARTRAIN_PURE=1` in the
environment makes it take the source: to step through it, or to see whether a fault is one of the compiler's.
"""

import importlib.util
import os
from collections.abc import Mapping, Sequence
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from types import ModuleType
from typing import Final

VARIABLE: Final = "GEARTRAIN_PURE"
_PREFIX: Final = "geartrain."
_A_COMPILED_MODULE: Final = "geartrain.model"
_NO: Final = frozenset({"", "0", "no", "false"})


class SourceFinder:
    """Finds the modules of this package, and of them only the sources."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Python's question for a module; None leaves it to the usual finders."""
        if not name.startswith(_PREFIX):
            return None
        for folder in path or ():
            spec = FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES)).find_spec(name)
            if spec is not None:
                return spec
        return None


def pure_wanted(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the plain sources are to run, compiled or not."""
    return environment.get(VARIABLE, "").lower() not in _NO


def form() -> str:
    """Which of the two runs: `compiled` or `pure`."""
    found = importlib.util.find_spec(_A_COMPILED_MODULE)
    origin = found.origin if found is not None else None
    return "compiled" if (origin or "").endswith(tuple(EXTENSION_SUFFIXES)) else "pure"
