"""gearmand's command line beside the real program's: the same options, and the same verdict on arguments."""

import re
import shutil
import subprocess

import pytest

from geartrain.cli import gearmand
from geartrain.cli import gearmand_options as options
from geartrain.cli.gearmand_options import ArgumentType
from geartrain.errors import SettingsError

HELP_LINE = re.compile(r"  (?:-(?P<short>\w) \[ --(?P<boxed>[\w-]+) \]|--(?P<long>[\w-]+))(?P<arg> arg)?")


def real_program() -> str:
    program = shutil.which("gearmand", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    assert program is not None  # the `peer` marker has seen to it
    return program


def real_options() -> dict[str, tuple[str, bool]]:
    """What `gearmand --help` lists: short name and whether it takes an argument, by long name."""
    answer = subprocess.run([real_program(), "--help"], capture_output=True, text=True, timeout=60)
    lines = filter(None, map(HELP_LINE.match, answer.stdout.splitlines()))
    return {line["boxed"] or line["long"]: (line["short"] or "", line["arg"] is not None) for line in lines}


@pytest.mark.peer("gearmand")
def test_table_has_every_option_of_the_real_program() -> None:
    additions = {"job-timeout-action", "max-packet"}
    ours = {
        option.long: (option.short, option.takes is not ArgumentType.NOTHING)
        for option in options.OPTIONS
        if not option.hidden and option.long not in additions
    }
    real = real_options()
    assert len(real) > 40
    assert ours == real
    assert additions <= {option.long for option in options.OPTIONS}


@pytest.mark.peer("gearmand")
@pytest.mark.parametrize(
    "words",
    [
        ["--check-args"],
        ["foo"],
        ["--", "foo"],
        ["--"],
        ["-"],
        [""],
        ["-v"],
        ["-x"],
        ["-Rx"],
        ["--bogus"],
        ["--daem"],
        ["--Port=1"],
        ["--port"],
        ["-p"],
        ["-p", "-d"],
        ["-p4731"],
        ["-p", "4731"],
        ["--port=4731"],
        ["--port", "4731"],
        ["--port="],
        ["-dR"],
        ["-Rp4731"],
        ["-R", "-R"],
        ["-R", "--round-robin"],
        ["--port=1", "-p2"],
        ["--exceptions=yes"],
        ["-b", "-1"],
        ["-b", "x"],
        ["-j", "abc"],
        ["-t", "5000000000"],
        ["--keepalive-idle=abc"],
        ["--mysql-port=abc"],
        ["--http-port=x"],
        ["--verbose=INFO"],
        ["--verbose=info"],
        ["--verbose=LOUD"],
        ["--config-file=/nowhere"],
    ],
)
def test_same_verdict_as_the_real_program(words: list[str]) -> None:
    """Both only check their arguments; the exit code is what a script sees."""
    common = ["--check-args"] if "--check-args" not in words else []
    real = subprocess.run([real_program(), *common, *words], capture_output=True, text=True, timeout=60)
    try:
        values = gearmand.read_options([*common, *words])
        gearmand._level(values)
        ours, said = 0, ""
    except SettingsError as error:
        ours, said = 1, str(error)
    assert ours == real.returncode, (said, real.stderr)
    # Where the real program quotes an option, so do we, in the same words.
    if "option '" in real.stderr:
        assert said == real.stderr.strip().removeprefix(f"{real_program()}: ")
