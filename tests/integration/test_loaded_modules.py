"""Which modules an import loads, seen in a fresh interpreter."""

import subprocess
import sys

import pytest

from tests.support import serving

# What an interpreter loads by itself: `site` and the finder of an editable installation.
_MODULES = "import sys; print(*sys.modules)"


def test_the_server_does_not_load_the_library() -> None:
    program = "import geartrain.server.server, sys; print([m for m in sys.modules if m.startswith('geartrain.client')])"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout == "[]\n"


def test_the_table_of_verbs_loads_nothing_else() -> None:
    code = "import sys, geartrain; old = set(sys.modules); import geartrain.admin.verbs; print(*{*sys.modules} - old)"
    imported = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    ours = {name for name in imported if name.startswith("geartrain")}
    assert all(name == "geartrain.admin" or name.startswith("geartrain.admin.verbs") for name in ours)


# Of a client's verb: the modules of the command line. Everything else of ours is the library and plain data.
_OF_CLIENTS = {"main", "exit_codes", "command_line", "verb_modules", "parameters", "connection_options", "remote"}
_OF_VERBS = {
    "submit": {*_OF_CLIENTS, "submit", "formatting", "progress", "tables"},
    "status": {*_OF_CLIENTS, "status", "formatting", "progress", "tables"},
    "version": {
        "main",
        "exit_codes",
        "command_line",
        "verb_modules",
        "parameters",
        "connection_options",
        "version",
        "tables",
    },
}
# What the server and typer need, and what is slow to import of Python's own. Two of them have a use in one verb each.
_FOREIGN = {"apsw", "cbor2", "click", "cronsim", "httptools", "msgspec", "psycopg", "pydantic", "rich"}
_FOREIGN |= {"starlette", "tomlkit", "typer", "uvicorn", "uvloop", "argparse", "multiprocessing", "sqlite3", "xml"}
_NEEDED = {"submit": set(), "status": {"msgspec"}, "version": {"uvloop"}}
_SERVER_ROOMS = ("admin", "doors", "engine", "maintenance", "runtime", "server", "store")


def of_the_server(modules: set[str]) -> set[str]:
    """Those of them that only a server has a use for. The library with the compiled codecs lies beside the doors."""
    rooms = tuple(f"geartrain.{room}." for room in _SERVER_ROOMS)
    return {name for name in modules if name.startswith(rooms) and not name.endswith("__mypyc")}


@pytest.mark.parametrize("verb", _OF_VERBS)
def test_a_verb_of_clients_loads_neither_typer_nor_the_server(verb: str, server: serving.ServerProcess) -> None:
    """Importing is most of what such a command does, and scripts call it again and again."""
    words = {"submit": ["submit", "loads"], "status": ["status"], "version": ["version"]}[verb]
    code = """
import sys
old = set(sys.modules)
from geartrain.cli import main
try:
    main.main()
finally:
    print(*{*sys.modules} - old, file=sys.stderr)
"""
    url = ["--server", server.url] if verb != "version" else []
    run = subprocess.run([sys.executable, "-c", code, *words, *url], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    modules = set(run.stderr.splitlines()[-1].split())
    of_cli = {name.removeprefix("geartrain.cli.") for name in modules if name.startswith("geartrain.cli.")}
    assert of_cli == _OF_VERBS[verb]
    assert of_the_server(modules) == set()
    assert {name.partition(".")[0] for name in modules} & _FOREIGN == _NEEDED[verb]


@pytest.mark.parametrize("scheme", ["gearman", "danga", "periodic", "gearmonkey"])
def test_the_library_needs_no_package_but_one(scheme: str) -> None:
    """So that it can be installed without dependencies: see docs/install.md."""
    code = f"""
import asyncio, sys, geartrain
from geartrain import address
from geartrain.client.protocols import registry
registry.worker_class(address.parse("{scheme}://127.0.0.1:1"))
geartrain.Worker, geartrain.AsyncWorker, geartrain.Client
client = geartrain.AsyncClient("{scheme}://127.0.0.1:1", patience=0.01)
try:
    asyncio.run(client.run("function"))
except geartrain.ServerGoneError:
    print(*{{name.partition(".")[0] for name in sys.modules}} - sys.stdlib_module_names - set(sys.argv[1].split()))
"""
    before = subprocess.run([sys.executable, "-c", _MODULES], capture_output=True, text=True, check=True).stdout
    run = subprocess.run([sys.executable, "-c", code, before], capture_output=True, text=True, check=True, timeout=60)
    assert {name for name in run.stdout.split() if not name.startswith("__")} == {"geartrain", "mypy_extensions"}


@pytest.mark.parametrize("scheme", ["gearman", "danga", "periodic", "memodb+tcp", "gearmonkey", "http"])
def test_the_library_does_not_load_the_server(scheme: str) -> None:
    code = f"""
import sys, geartrain
with geartrain.Client("{scheme}://127.0.0.1:1", patience=0.01) as client:
    try:
        client.run("function")
    except geartrain.ServerGoneError:
        print(*sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    modules = set(run.stdout.split())
    assert "geartrain.client.sync_client" in modules
    assert of_the_server(modules) == set()
    assert not modules & {"apsw", "starlette", "typer", "uvicorn"}


def test_an_app_without_tracing_does_not_load_opentelemetry() -> None:
    code = """
import sys
from geartrain import App
from geartrain.testing import InMemory
app = App("shop")
@app.task
async def greet() -> str:
    return "Hello"
with app, InMemory(app):
    assert greet.call_sync() == "Hello"
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout == "[]\n"
