"""Compiles the core with mypyc, where that is possible; everything else about the package is in pyproject.toml.

The compiled modules land beside their sources, which stay what Python reads when the compiled ones cannot be made
(no C compiler, no headers of Python) or are not wanted (GEARTRAIN_PURE=1, here and at run time). A build never
fails for their sake: it says what was in the way and goes on without them.

    python setup.py build_ext --inplace      # what `make` does for a working copy
"""

import os
import shlex
import shutil
import sys
import sysconfig
import time
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

PURE = os.environ.get("GEARTRAIN_PURE", "").lower() not in ("", "0", "no", "false")
SOURCE = Path("src")
PACKAGE = SOURCE / "geartrain"

# Modules that call each other all the time share a library; two libraries are compiled at the same time.
LIBRARIES = {
    "geartrain.native": (
        "model.py",
        "engine/*.py",
        "wire/gearman.py",
        "wire/stream.py",
        "doors/*.py",
        "doors/gearman/*.py",
        "runtime/*.py",
        "store/contract.py",
        "store/memory_record.py",
        "store/memory.py",
    ),
    "geartrain.doors.native": ("wire/*.py", "doors/*/*.py"),
}

# Not worth the time: no job passes through these.
COLD = (
    "__init__.py",
    "doors/gearman/admin.py",
    "doors/gearman/dates.py",
    "doors/gearmonkey/channel_commands.py",
    "doors/gearmonkey/channels.py",
    "doors/gearmonkey/counter_commands.py",
    "doors/gearmonkey/glob.py",
    "doors/gearmonkey/key_commands.py",
    "doors/gearmonkey/script_commands.py",
    "doors/gearmonkey/session_commands.py",
    "doors/gearmonkey/transaction.py",
    "doors/periodic/calendar.py",
    "doors/periodic/config.py",
    "doors/periodic/locks.py",
    "doors/http/*.py",
    "runtime/memory.py",
    "wire/websocket.py",
    "wire/websocket_client.py",
)

# Types are checked by `make check`; here mypy reads them, in an environment that has none of our dependencies.
MYPY_FLAGS = ("--config-file=", "--explicit-package-bases", "--ignore-missing-imports")


class CompileCore(build_ext):
    """Turns the core into C when it is asked to run, not before: that takes a while."""

    def initialize_options(self) -> None:
        super().initialize_options()
        self.parallel = len(LIBRARIES)

    def run(self) -> None:
        began = time.monotonic()
        obstacle = "The compiled core is not wanted (GEARTRAIN_PURE)" if PURE else missing_tool()
        if obstacle:
            self._go_without(obstacle)
            return
        say("compiling the core; this takes about a minute")
        try:
            self.distribution.ext_modules = translate()
            self.swig_opts = None  # the one option that cannot be finalized twice
            self.finalize_options()
            say(f"C is written ({time.monotonic() - began:.0f} s), compiling it")
            super().run()
            self._tidy()
        except (Exception, SystemExit) as error:  # mypyc leaves by SystemExit, compilers by exceptions of their own
            self._go_without(f"the core could not be compiled: {error}")
            return
        say(f"the core is compiled ({time.monotonic() - began:.0f} s)")

    def _go_without(self, why: str) -> None:
        say(f"{why}. Going on with the pure Python version: it does the same, more slowly")
        self.extensions = self.distribution.ext_modules = []
        self._tidy()

    def _tidy(self) -> None:
        """Nothing is left of an earlier build, and what was up to date already says so by its time."""
        built = {self.get_ext_filename(extension.name) for extension in self.extensions}
        for folder in (PACKAGE, Path(self.build_lib) / PACKAGE.name):
            for compiled in folder.rglob("*" + sysconfig.get_config_var("EXT_SUFFIX")):
                if str(compiled.relative_to(folder.parent)) in built:
                    compiled.touch()
                else:
                    compiled.unlink()


def missing_tool() -> str:
    """What is not there of what a compilation needs; empty if all of it is."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    headers = Path(sysconfig.get_path("include"), "Python.h")
    if shutil.which(compiler) is None:
        return f"There is no C compiler here ({compiler})"
    if not headers.exists():
        return f"There are no headers of Python here ({headers}; Debian has them in python3-dev)"
    try:
        import mypyc.build  # noqa: F401
    except ImportError:
        return "There is no mypyc here (pip install 'mypy[mypyc]')"
    return ""


def translate() -> list[Extension]:
    """The core as C files, and the extensions to be made of them."""
    from mypyc.build import mypycify

    os.environ["MYPYPATH"] = str(SOURCE)
    groups: list[tuple[list[str], str | None]] = []
    taken: set[str] = set()
    for name, patterns in LIBRARIES.items():
        found = {str(path) for pattern in patterns for path in PACKAGE.glob(pattern) if not is_cold(path)}
        files = sorted(found - taken)
        taken.update(files)
        groups.append((files, name))
    return list(mypycify([*MYPY_FLAGS, *sorted(taken)], opt_level="2", debug_level="0", separate=groups))


def is_cold(path: Path) -> bool:
    return any(path.match(pattern) for pattern in COLD)


def say(text: str) -> None:
    print(f"geartrain: {text}", file=sys.stderr, flush=True)


setup(
    # Only announced: what really is compiled is known when the command runs.
    ext_modules=[] if PURE else [Extension("geartrain.native__mypyc", [])],
    cmdclass={"build_ext": CompileCore},
)
