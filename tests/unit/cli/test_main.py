"""The command as a whole: verbs, exit codes, and one line for every error of ours."""

import json
import platform
import re

import pytest

import geartrain
from geartrain import compiled, eventloop
from geartrain.cli import exit_codes, main
from geartrain.server.config import load
from geartrain.server.config.settings import TABLE, Settings
from geartrain.server.process import launch


def run(monkeypatch: pytest.MonkeyPatch, *words: str, program: str = "geartrain") -> object:
    """The exit code of the command."""
    monkeypatch.setattr("sys.argv", [program, *words])
    monkeypatch.setenv("GEARTRAIN_CONFIG", "/dev/null")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    with pytest.raises(SystemExit) as end:
        main.main()
    return end.value.code


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """The settings of servers that would have been started."""
    started: list[Settings] = []
    monkeypatch.setattr(launch, "serve", lambda settings, *rest: started.append(settings))
    return started


def test_version(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "version") == 0
    words = capsys.readouterr().out
    facts = f"Python {platform.python_version()}, {eventloop.best().name}, {compiled.form()} core"
    assert words == f"geartrain {geartrain.__version__} ({facts})\n"


def test_version_with_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "version", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "version": geartrain.__version__,
        "python": platform.python_version(),
        "loop": eventloop.best().name,
        "core": compiled.form(),
    }


def test_flags_become_settings(monkeypatch: pytest.MonkeyPatch, served: list[Settings]) -> None:
    listens = ["--listen", "gearman://127.0.0.1:1", "--listen=gearman://127.0.0.1:2"]
    assert run(monkeypatch, "serve", *listens, "--max-packet", "1MiB", "--no-keepalive", "--exceptions") == 0
    [settings] = served
    assert [address.port for address in settings.listen] == [1, 2]
    assert (settings.max_packet, settings.keepalive, settings.exceptions) == (1024**2, False, True)
    assert settings.log_level == Settings().log_level


def test_flags_have_precedence_over_the_environment(monkeypatch: pytest.MonkeyPatch, served: list[Settings]) -> None:
    monkeypatch.setenv("GEARTRAIN_EXCEPTIONS", "true")
    monkeypatch.setenv("GEARTRAIN_BACKLOG", "7")
    assert run(monkeypatch, "serve", "--backlog=8") == 0
    assert (served[0].exceptions, served[0].backlog) == (True, 8)


def test_settings_error_is_one_line_and_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "serve", "--backlog", "many") == 1
    out, err = capsys.readouterr()
    assert (out, err) == ("", "geartrain: --backlog many: must be a whole number, 1 or more\n")


@pytest.mark.parametrize("words", [["serve", "--bogus"], ["serve", "--backlog"], ["serve", "stray"], ["nonsense"]])
def test_wrong_usage_is_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert run(monkeypatch, *words) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_interrupt_has_no_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*rest: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(load, "load", interrupted)
    assert run(monkeypatch, "serve") == exit_codes.INTERRUPTED
    assert "Traceback" not in capsys.readouterr().err


def test_help_describes_every_setting(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "serve", "--help") == 0
    text = re.sub(r"[│\s]+", " ", capsys.readouterr().out)
    for setting in TABLE.values():
        assert f"{setting.flag} " in text
        assert f"─ {setting.group} ─" in text
        assert f"default: {setting.shown_default.replace('`', '')}]" in text
    for lesson in ("GEARTRAIN_MAX_PACKET=1MiB", 'max_packet = "1MiB"', "geartrain.toml", "USR1", "Examples"):
        assert lesson in text
    assert "…" not in text


def test_verbs_are_listed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "--help") == 0
    text = capsys.readouterr().out
    for verb in ("serve", "version", "gearmand"):
        assert re.search(rf"^│ {verb} ", text, re.MULTILINE)


@pytest.mark.parametrize(("program", "verb"), [("geartrain", ["gearmand"]), ("/usr/sbin/gearmand", [])])
def test_gearmands_options_by_verb_or_by_program_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], program: str, verb: list[str]
) -> None:
    assert run(monkeypatch, *verb, "-dR", "--bogus", program=program) == 1
    assert capsys.readouterr().err == "gearmand: unrecognised option '--bogus'\n"
