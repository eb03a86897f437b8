"""The compiled core: which form of it runs, and how to run the pure Python sources instead.

Compiled modules are beside their sources, and Python imports the compiled one. `GEARTRAIN_PURE=1` in the environment
makes it import the source, to debug it or to find out whether the compiler causes a bug.
"""

import importlib.util
import os
from collections.abc import Mapping, Sequence
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from types import ModuleType
from typing import Final

VARIABLE: Final = "GEARTRAIN_PURE"
_PREFIX: Final = "geartrain."
_SAMPLE_MODULE: Final = "geartrain.model"
_FALSE: Final = frozenset({"", "0", "no", "false"})

# What to do about a core that is not compiled although nobody asked for that.
ADVICE: Final = (
    "install a wheel for this platform; or install a C compiler and Python's headers (Debian: gcc python3-dev), and "
    "run `pip install --force-reinstall --no-binary geartrain geartrain`"
)


class SourceFinder:
    """An import finder that finds only the sources of this package's modules."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Called by Python's import system; None leaves the module to the other finders."""
        if not name.startswith(_PREFIX):
            return None
        for folder in path or ():
            spec = FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES)).find_spec(name)
            if spec is not None:
                return spec
        return None


def is_pure_requested(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment requests the pure Python sources."""
    return environment.get(VARIABLE, "").lower() not in _FALSE


def is_fallback() -> bool:
    """Whether the pure core runs only because there is no compiled one."""
    return form() == "pure" and not PURE_WAS_REQUESTED


def form() -> str:
    """The form of the core that runs: `compiled` or `pure`."""
    spec = importlib.util.find_spec(_SAMPLE_MODULE)
    origin = spec.origin if spec is not None else None
    return "compiled" if (origin or "").endswith(tuple(EXTENSION_SUFFIXES)) else "pure"


# When the package was imported, which is when the form of the core is decided.
PURE_WAS_REQUESTED: Final = is_pure_requested()
