"""Which modules an import loads, seen in a fresh interpreter."""

import subprocess
import sys

import pytest

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
