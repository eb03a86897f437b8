"""gearmand's command line: every option of the real program, and its rules about writing them."""

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
    answer = subprocess.run([real_program(), "--help"], capture_output=True, text=True, timeout=20)
    lines = filter(None, map(HELP_LINE.match, answer.stdout.splitlines()))
    return {line["boxed"] or line["long"]: (line["short"] or "", line["arg"] is not None) for line in lines}


@pytest.mark.peer("gearmand")
def test_table_has_every_option_of_the_real_program() -> None:
    ours = {
        option.long: (option.short, option.takes is not ArgumentType.NOTHING)
        for option in options.OPTIONS
        if not option.hidden
    }
    real = real_options()
    assert len(real) > 40
    assert ours == real


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
    real = subprocess.run([real_program(), *common, *words], capture_output=True, text=True, timeout=20)
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


@pytest.mark.parametrize("option", options.OPTIONS, ids=lambda option: option.long)
def test_every_way_of_writing_an_option(option: options.Option) -> None:
    value = {ArgumentType.NOTHING: "", ArgumentType.TEXT: "some text", ArgumentType.NUMBER: "17"}[option.takes]
    wanted = {option.long: value}
    if option.takes is ArgumentType.NOTHING:
        ways = [[f"--{option.long}"]] + ([[f"-{option.short}"]] if option.short else [])
    else:
        ways = [[f"--{option.long}={value}"], [f"--{option.long}", value]]
        if option.short:
            ways += [[f"-{option.short}{value}"], [f"-{option.short}", value]]
    for way in ways:
        assert options.parse(way) == wanted


def test_value_may_contain_what_separates() -> None:
    assert options.parse(["--libpq-conninfo=host=x port=1"]) == {"libpq-conninfo": "host=x port=1"}


def test_option_is_not_taken_for_a_value() -> None:
    with pytest.raises(SettingsError, match="required argument for option '--port' is missing"):
        options.parse(["--port", "--daemon"])


def test_configuration_file() -> None:
    text = """
        # --port=1 is only a comment
        --port=4731   -R
        --listen
        localhost
        --log-file '/var/log/my gearmand.log'
        stray words
        -p=
    """
    with pytest.raises(SettingsError, match="'--port' cannot be specified more than once"):
        options.parse_file(text)
    assert options.parse_file(text.replace("-p=", "")) == {
        "port": "4731",
        "round-robin": "",
        "listen": "localhost",
        "log-file": "/var/log/my gearmand.log",
    }


def test_configuration_file_with_an_unknown_option() -> None:
    with pytest.raises(SettingsError, match="unrecognised option '--bogus'"):
        options.parse_file("--port 4731 --bogus")


def test_configuration_file_with_a_lone_quote() -> None:
    with pytest.raises(SettingsError, match="invalid configuration file: No closing quotation"):
        options.parse_file("--port '4731")


def test_help_lists_every_option_in_gearmands_layout() -> None:
    text = options.help_text()
    for option in options.OPTIONS:
        assert (f"--{option.long}" in text) is not option.hidden
    assert "  -p [ --port ] arg (=4730)             The port to listen on" in text
    assert all(len(line) <= 80 for line in text.splitlines())
    found = {line["boxed"] or line["long"] for line in map(HELP_LINE.match, text.splitlines()) if line}
    assert found == {option.long for option in options.OPTIONS if not option.hidden}
