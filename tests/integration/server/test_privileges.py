"""Limits and user of the process."""

import os
import pwd
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from geartrain.errors import StartError
from geartrain.server.process import privileges


def in_a_process(program: str) -> list[str]:
    """Run this in a child process: limits and users cannot be restored."""
    lines = ["import os, resource", "from geartrain.server.process import privileges", program]
    answer = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.split()


def test_file_limit_is_raised_to_the_hard_limit() -> None:
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
    with pytest.raises(StartError, match="cannot set the limit of open files to 9999999999"):
        privileges.set_file_limit(9_999_999_999)


def test_core_files_are_allowed() -> None:
    program = (
        "hard = resource.getrlimit(resource.RLIMIT_CORE)[1];"
        "resource.setrlimit(resource.RLIMIT_CORE, (0, hard)); privileges.allow_core();"
        "print(resource.getrlimit(resource.RLIMIT_CORE)[0] == hard)"
    )
    assert in_a_process(program) == ["True"]


def test_unknown_user_is_refused() -> None:
    with pytest.raises(StartError, match="unknown user 'nobody-at-all'"):
        privileges.find_user("nobody-at-all")


def test_switching_to_the_same_user_changes_nothing() -> None:
    privileges.become(pwd.getpwuid(os.getuid()))


@pytest.mark.skipif(os.getuid() != 0, reason="only root can switch users")
def test_root_switches_to_another_user_permanently() -> None:
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


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_a_link_to_a_file_of_root_is_not_given_away(tmp_path: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    secret, symlink, hard_link, own = (tmp_path / name for name in ("secret", "symlink", "hard-link", "own"))
    secret.write_text("")
    symlink.symlink_to(secret)
    hard_link.hardlink_to(secret)
    for path in (symlink, hard_link, own):
        privileges.give_file(str(path), nobody)
    assert secret.stat().st_uid == 0
    assert own.stat().st_uid == nobody.pw_uid
