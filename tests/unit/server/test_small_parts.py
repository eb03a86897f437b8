"""Parts of the server that are too small for a file of their own: loop, collector, signals, privileges."""

import asyncio
import ctypes
import gc
import os
import pwd
import resource
import signal
import subprocess
import sys

import pytest

from geartrain import eventloop
from geartrain.errors import StartError
from geartrain.runtime import memory
from geartrain.server.process import privileges, signals


def test_uvloop_is_preferred() -> None:
    pytest.importorskip("uvloop")
    best = eventloop.best()
    made = best.factory()
    made.close()
    assert best.name == type(made).__module__ == "uvloop"


def test_asyncio_is_good_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    best = eventloop.best()
    made = best.factory()
    made.close()
    assert best.name == "asyncio"
    assert type(made).__module__.startswith("asyncio")


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="this C library gives back by itself")
def test_memory_that_was_freed_is_given_back() -> None:
    source = (
        "import pathlib; from geartrain.runtime import memory;"
        "size = lambda: int(pathlib.Path('/proc/self/status').read_text().split('VmRSS:')[1].split()[0]);"
        "blocks = [b'%02000d' % number for number in range(50_000)]; last = blocks.pop(); blocks.clear();"
        "before = size(); memory.give_back(); print(before - size() > 50_000)"
    )
    answer = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60)
    assert (answer.stdout, answer.stderr) == ("True\n", "")


def test_collector_freezes_what_the_start_has_built() -> None:
    """In a process of its own: this one's memory is not ours to freeze."""
    program = (
        "import gc; from geartrain.runtime import memory; memory.settle();"
        "print(gc.get_freeze_count() > 1000, gc.get_threshold() == memory.THRESHOLDS, gc.isenabled())"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["True", "True", "True"]
    assert gc.get_threshold() != memory.THRESHOLDS


def test_signals_reach_their_handlers_and_mean_nothing_afterwards() -> None:
    before = signal.getsignal(signal.SIGUSR2)

    async def wait_for_one() -> str:
        running = asyncio.get_running_loop()
        heard = running.create_future()
        with signals.handled(running, {signal.SIGUSR2: lambda: heard.set_result("heard")}):
            os.kill(os.getpid(), signal.SIGUSR2)
            return await asyncio.wait_for(heard, 10)

    try:
        assert asyncio.run(wait_for_one()) == "heard"
        assert signal.getsignal(signal.SIGUSR2) is signal.SIG_IGN
        assert signal.SIGUSR2 not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
        os.kill(os.getpid(), signal.SIGUSR2)
    finally:
        signal.signal(signal.SIGUSR2, before)


def in_a_process(program: str) -> list[str]:
    """Limits and users cannot be given back, so a child has to try them."""
    lines = ["import os, resource", "from geartrain.server.process import privileges", program]
    answer = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.split()


def test_file_limit_is_raised_to_what_is_allowed() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    program = (
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]));"
        "privileges.raise_file_limit(); print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    assert in_a_process(program) == [str(hard)]


def test_file_limit_can_be_set_lower() -> None:
    program = "privileges.set_file_limit(100); print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    assert in_a_process(program) == ["100"]


def test_impossible_file_limit_is_refused() -> None:
    with pytest.raises(StartError, match="9999999999 open files are not allowed here"):
        privileges.set_file_limit(9_999_999_999)


def test_core_files_are_allowed() -> None:
    program = (
        "hard = resource.getrlimit(resource.RLIMIT_CORE)[1];"
        "resource.setrlimit(resource.RLIMIT_CORE, (0, hard)); privileges.allow_core();"
        "print(resource.getrlimit(resource.RLIMIT_CORE)[0] == hard)"
    )
    assert in_a_process(program) == ["True"]


def test_unknown_user_is_refused() -> None:
    with pytest.raises(StartError, match="there is no user 'nobody-at-all' to switch to"):
        privileges.find_user("nobody-at-all")


def test_becoming_oneself_changes_nothing() -> None:
    privileges.become(pwd.getpwuid(os.getuid()))


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_root_becomes_another_for_good() -> None:
    nobody = pwd.getpwnam("nobody")
    program = (
        "privileges.become(privileges.find_user('nobody'));"
        "print(os.getresuid() == (os.getuid(),) * 3, os.getuid(), os.getgid(), os.getgroups())\n"
        "try: privileges.become(privileges.find_user('root'))\n"
        "except Exception as error: print(type(error).__name__)"
    )
    same, uid, gid, groups, refused = in_a_process(program)
    assert (same, uid, gid, refused) == ("True", str(nobody.pw_uid), str(nobody.pw_gid), "StartError")
    assert groups == f"[{nobody.pw_gid}]"
