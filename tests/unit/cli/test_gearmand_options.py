"""gearmand's command line: how its options are written, and the help that lists them."""

import re

import pytest

from geartrain.cli import gearmand_options as options
from geartrain.cli.gearmand_options import ArgumentType
from geartrain.errors import SettingsError

HELP_LINE = re.compile(r"  (?:-(?P<short>\w) \[ --(?P<boxed>[\w-]+) \]|--(?P<long>[\w-]+))(?P<arg> arg)?")


@pytest.mark.parametrize("option", options.OPTIONS, ids=lambda option: option.long)
def test_every_syntax_of_an_option(option: options.Option) -> None:
    value = {ArgumentType.NOTHING: "", ArgumentType.TEXT: "some text", ArgumentType.NUMBER: "17"}[option.takes]
    expected = {option.long: value}
    if option.takes is ArgumentType.NOTHING:
        ways = [[f"--{option.long}"]] + ([[f"-{option.short}"]] if option.short else [])
    else:
        ways = [[f"--{option.long}={value}"], [f"--{option.long}", value]]
        if option.short:
            ways += [[f"-{option.short}{value}"], [f"-{option.short}", value]]
    for way in ways:
        assert options.parse(way) == expected


def test_value_may_contain_separators() -> None:
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
