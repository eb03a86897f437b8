"""Which modules an import loads, seen in a fresh interpreter."""

import subprocess
import sys


def test_the_server_does_not_load_the_library() -> None:
    program = "import geartrain.server.server, sys; print([m for m in sys.modules if m.startswith('geartrain.client')])"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout == "[]\n"


def test_the_table_of_verbs_loads_nothing_else() -> None:
    code = "import sys, geartrain; old = set(sys.modules); import geartrain.admin.verbs; print(*{*sys.modules} - old)"
    imported = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    ours = {name for name in imported if name.startswith("geartrain")}
    assert all(name == "geartrain.admin" or name.startswith("geartrain.admin.verbs") for name in ours)
