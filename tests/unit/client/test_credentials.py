"""Which token a connection sends, where it comes from, and that it is not printed."""

import logging
from pathlib import Path

import pytest

from geartrain import address
from geartrain.client import credentials
from geartrain.client.credentials import Credentials, credentials_for
from geartrain.errors import ClientError, UnsupportedError

VARIABLES = ("GEARTRAIN_TOKEN", "GEARTRAIN_TOKEN_FILE", "GEARTRAIN_HTTP_TOKEN", "GEARTRAIN_PERIODIC_TOKEN")


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(credentials, "_of_command", [])
    monkeypatch.setattr(credentials, "_warned", set())


def token(url: str, explicit: str | None = None) -> str:
    return credentials_for(address.parse(url), None, explicit).token


def test_order_of_the_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    url = "http://127.0.0.1"
    assert token(url) == ""
    file = tmp_path / "token"
    file.write_text("of-file\n")
    monkeypatch.setenv("GEARTRAIN_TOKEN_FILE", str(file))
    assert token(url) == "of-file"
    monkeypatch.setenv("GEARTRAIN_TOKEN", "of-variable")
    assert token(url) == "of-variable"
    monkeypatch.setenv("GEARTRAIN_HTTP_TOKEN", "of-http")
    assert (token(url), token("gearman://127.0.0.1")) == ("of-http", "of-variable")
    file.write_text("of-command")
    credentials.use_file(str(file))
    assert token(url) == "of-command"
    assert token(url, "of-program") == "of-program"
    assert token(url, "") == ""


def test_token_of_the_periodic_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEARTRAIN_PERIODIC_TOKEN", "open sesame")
    assert token("periodic+unix:///run/periodic.sock") == "open sesame"
    assert token("gearman://127.0.0.1") == ""


@pytest.mark.parametrize("url", ["danga://127.0.0.1", "memodb+ws://127.0.0.1", "memodb+ipc:///run/memodb.sock"])
def test_protocols_without_tokens(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GEARTRAIN_TOKEN", "of-variable")
    assert token(url) == ""
    with pytest.raises(UnsupportedError, match="client certificate"):
        token(url, "of-program")
    (tmp_path / "token").write_text("of-command")
    credentials.use_file(str(tmp_path / "token"))
    with pytest.raises(UnsupportedError, match="client certificate"):
        token(url)


@pytest.mark.parametrize(
    ("url", "secret"), [("http://h", "a\r\nX: y"), ("gearman://h", "a b"), ("gearman://h", "a\nb")]
)
def test_tokens_that_would_break_a_request(url: str, secret: str) -> None:
    with pytest.raises(ClientError) as caught:
        token(url, secret)
    assert secret not in str(caught.value)


def test_files_without_a_token(tmp_path: Path) -> None:
    with pytest.raises(ClientError, match=r"cannot read the token from .*missing"):
        credentials.use_file(str(tmp_path / "missing"))
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(ClientError, match="has no token"):
        credentials.use_file(str(tmp_path / "empty"))


def test_secret_is_not_printed() -> None:
    assert "secret" not in repr(Credentials(None, "secret"))


@pytest.mark.parametrize(
    ("url", "warned"),
    [
        ("gearman://jobs.example", True),
        ("http://192.0.2.1", True),
        ("gearmans://jobs.example", False),
        ("gearman://localhost", False),
        ("gearman://127.0.0.2", False),
        ("http://[::1]", False),
        ("periodic+unix:///run/periodic.sock", False),
    ],
)
def test_unencrypted_tokens_are_warned_of_once(url: str, warned: bool, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "geartrain.client"):
        for _ in range(2):
            token(url, "secret")
    assert [record.levelname for record in caplog.records] == ["WARNING"] * warned
    assert "secret" not in caplog.text
