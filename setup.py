"""Compile the core with mypyc. Everything else about the package is in pyproject.toml.

The compiled modules lie beside their sources. Python uses a source where its module is not compiled, or where
GEARTRAIN_PURE=1 is set, at build time or at run time.

A build has three outcomes:

- compiled, where a C compiler, Python's headers and mypyc are installed;
- pure Python, where one of them is missing or GEARTRAIN_PURE=1 is set: the build prints which, and a wheel is tagged
  `py3-none-any`;
- an error, where they are installed and the compilation fails. There is no fall-back to pure Python in that case,
  because nobody would notice that the server is slower than it could be.

    python setup.py build_ext --inplace      # a working copy; `make compile` runs this
    pip wheel --no-deps .                    # a wheel
"""

import contextlib
import importlib.util
import io
import os
import shlex
import shutil
import sys
import sysconfig
import time
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext

SOURCE = Path("src")
PACKAGE = SOURCE / "geartrain"
BUILD = Path("build")
CACHE = BUILD / "mypy"
CACHE_IS_WHOLE = BUILD / "mypy-is-whole"  # a file that exists except while the cache is written

# Patterns below the package, by shared library. A module belongs to the first library that names it. Modules that call
# each other for every job share a library, because calls between libraries cost more; libraries compile in parallel.
LIBRARIES = {
    "geartrain.native": (
        "model.py",
        "usage.py",
        "rates.py",
        "engine/*.py",
        "wire/gearman.py",
        "wire/packet_buffer.py",
        "doors/*.py",
        "doors/gearman/*.py",
        "runtime/*.py",
        "store/contract.py",
        "store/memory.py",
        "store/postgresql_rows.py",
    ),
    "geartrain.doors.http.native": ("wire/http.py", "doors/http/*.py"),
    "geartrain.doors.native": ("wire/*.py", "doors/*/*.py"),
}

# Modules that no job passes through stay Python: compiling them would only lengthen the build.
COLD = (
    "**/__init__.py",
    "doors/gearman/admin_commands.py",
    "doors/gearman/cluster_status.py",
    "doors/gearman/scheduled_time.py",
    "doors/gearmonkey/distant_counts.py",
    "doors/gearmonkey/distant_hashes.py",
    "doors/gearmonkey/distant_subscribers.py",
    "doors/gearmonkey/glob.py",
    "doors/gearmonkey/queue_lists.py",
    "doors/gearmonkey/queue_removals.py",
    "doors/gearmonkey/session_commands.py",
    "doors/peer/mirror.py",
    "doors/peer/mirror_feeds.py",
    "doors/peer/mirrors.py",
    "doors/periodic/first_due.py",
    "doors/periodic/config.py",
    "doors/periodic/shared_locks.py",
    "doors/http/door.py",
    "doors/http/events.py",
    "doors/http/gearmand_protocol.py",
    "doors/http/health.py",
    "doors/http/metrics.py",
    "doors/http/openapi.py",
    "doors/http/openapi_schemas.py",
    "doors/http/problems.py",
    "doors/http/proxies.py",
    "doors/http/routes.py",
    "doors/http/session.py",
    "doors/http/static_files.py",
    "doors/http/submission.py",
    "doors/http/tokens.py",
    "doors/http/verb_routes.py",
    "doors/http/watcher.py",
    "doors/http/worker.py",
    "doors/http/worker_commands.py",
    "doors/tls_listener.py",
    "doors/web_access.py",
    "runtime/memory.py",
    "wire/event_stream.py",
    "wire/foreign_protocol.py",
    "wire/http_client.py",
    "wire/peer.py",
    "wire/websocket.py",
    "wire/websocket_client.py",
)

# mypy's options for the translation. `make check` is where types are checked; a build fails only for errors in the
# compiled modules and for libraries that they import and that build-system.requires does not name.
MYPY_OPTIONS = (
    "--config-file=",
    "--explicit-package-bases",
    "--follow-imports=silent",
    f"--cache-dir={CACHE}",
)


class BuildError(Exception):
    """Why the core cannot be compiled although the tools are installed."""


class BuildPackage(build):
    """`build` that says why there is nothing to compile. A wheel without compiled modules is for every platform."""

    def run(self) -> None:
        if WHY_PURE:
            log_pure(WHY_PURE)
        super().run()


class CompileCore(build_ext):
    """`build_ext` that translates the core to C first. Only when it runs: the translation takes several seconds."""

    def initialize_options(self) -> None:
        super().initialize_options()
        self.parallel = len(LIBRARIES)

    def run(self) -> None:
        if WHY_PURE:
            self.extensions = self.distribution.ext_modules = []
            log_pure(WHY_PURE)
        else:
            self._compile()
        self._remove_stale_modules()

    def _compile(self) -> None:
        began = time.monotonic()
        log("compiling the core; this takes a few minutes")
        try:
            self.distribution.ext_modules = translate(compiled_modules())
            self.swig_opts = None  # the one option that cannot be finalized twice
            self.finalize_options()
            log(f"wrote C in {time.monotonic() - began:.0f} s, compiling it")
            super().run()
        except Exception as error:
            raise SystemExit(
                f"geartrain: the core could not be compiled: {error}\n"
                "geartrain: to install the pure Python version instead, set GEARTRAIN_PURE=1 and repeat the command"
            ) from error
        log(f"compiled the core in {time.monotonic() - began:.0f} s")

    def _remove_stale_modules(self) -> None:
        """Delete compiled modules of an earlier build, and mark the current ones as newer than their sources."""
        built = {self.get_ext_filename(extension.name) for extension in self.extensions}
        for folder in (PACKAGE, Path(self.build_lib) / PACKAGE.name):
            for module in folder.rglob("*" + sysconfig.get_config_var("EXT_SUFFIX")):
                if str(module.relative_to(folder.parent)) in built:
                    module.touch()
                else:
                    module.unlink()


def why_pure() -> str:
    """Why the core will not be compiled: the environment says so, or a tool is missing; empty if it will be."""
    if os.environ.get("GEARTRAIN_PURE", "").lower() not in ("", "0", "no", "false"):
        return "GEARTRAIN_PURE is set"
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    header = Path(sysconfig.get_path("include"), "Python.h")
    if shutil.which(compiler) is None:
        return f"there is no C compiler ({compiler})"
    if not header.exists():
        return f"Python's headers are not installed ({header}; Debian: python3-dev)"
    if importlib.util.find_spec("mypyc") is None:
        return "mypyc is not installed (pip install 'mypy[mypyc]')"
    return ""


def compiled_modules() -> dict[str, list[Path]]:
    """The source files of each library."""
    libraries: dict[str, list[Path]] = {}
    taken = {path for pattern in COLD for path in matches(pattern)}
    for library, patterns in LIBRARIES.items():
        modules = {path for pattern in patterns for path in matches(pattern)} - taken
        libraries[library] = sorted(modules)
        taken |= modules
    return libraries


def matches(pattern: str) -> list[Path]:
    """The files that a pattern of LIBRARIES or COLD names. One that names none is left over from a renamed module."""
    paths = list(PACKAGE.glob(pattern))
    if not paths:
        raise BuildError(f"setup.py lists {PACKAGE / pattern}, which does not exist")
    return paths


def translate(libraries: dict[str, list[Path]]) -> list[Extension]:
    """Write the core as C files; return the extensions to compile from them."""
    from mypyc.build import mypycify

    os.environ["MYPYPATH"] = str(SOURCE)
    groups: list[tuple[list[str], str | None]] = [
        ([str(path) for path in modules], library) for library, modules in libraries.items()
    ]
    files = sorted(path for paths, _ in groups for path in paths)
    messages = io.StringIO()
    if not CACHE_IS_WHOLE.exists():  # mypyc cannot continue what an interrupted build has left
        shutil.rmtree(CACHE, ignore_errors=True)
    CACHE_IS_WHOLE.unlink(missing_ok=True)
    try:
        with contextlib.redirect_stdout(messages):  # mypyc prints what is wrong and exits
            extensions = mypycify([*MYPY_OPTIONS, *files], opt_level="2", debug_level="0", separate=groups)
    except SystemExit as error:
        raise BuildError(f"mypyc does not accept the sources:\n{messages.getvalue() or error}") from error
    CACHE_IS_WHOLE.touch()
    for extension in extensions:  # a warning of a compiler that mypyc's authors have not seen must not stop a build
        extension.extra_compile_args = [flag for flag in extension.extra_compile_args if flag != "-Werror"]
    return list(extensions)


def log_pure(reason: str) -> None:
    log(f"NOT COMPILED: {reason}. The pure Python version does the same work, several times slower")


def log(text: str) -> None:
    print(f"geartrain: {text}", file=sys.stderr, flush=True)


WHY_PURE = why_pure()

if __name__ == "__main__":
    setup(
        # A placeholder that makes setuptools run build_ext, which replaces it with the real extensions. Without it the
        # wheel is tagged py3-none-any.
        ext_modules=[] if WHY_PURE else [Extension("geartrain.native__mypyc", [])],
        cmdclass={"build": BuildPackage, "build_ext": CompileCore},
    )
