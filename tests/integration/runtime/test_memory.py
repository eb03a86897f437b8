"""Memory: the garbage collector's settings, and freed memory that goes back to the system."""

import ctypes
import gc
import subprocess
import sys

import pytest

from geartrain.runtime import memory


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="this C library gives back by itself")
def test_memory_that_was_freed_is_given_back() -> None:
    source = (
        "import pathlib; from geartrain.runtime import memory;"
        "size = lambda: int(pathlib.Path('/proc/self/status').read_text().split('VmRSS:')[1].split()[0]);"
        "blocks = [b'%02000d' % number for number in range(50_000)]; last = blocks.pop(); blocks.clear();"
        "before = size(); memory.trim(); print(before - size() > 50_000)"
    )
    answer = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60)
    assert (answer.stdout, answer.stderr) == ("True\n", "")


def test_collector_freezes_what_the_start_has_built() -> None:
    """In a process of its own: this one's memory is not ours to freeze."""
    program = (
        "import gc; from geartrain.runtime import memory; memory.tune_collector();"
        "print(gc.get_freeze_count() > 1000, gc.get_threshold() == memory.THRESHOLDS, gc.isenabled())"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["True", "True", "True"]
    assert gc.get_threshold() != memory.THRESHOLDS
