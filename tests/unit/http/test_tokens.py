"""Tokens and their scopes, and sessions."""

from pathlib import Path

import pytest

from geartrain.doors.http import tokens
from geartrain.errors import StartError

SECRET = "a-secret-of-sixteen"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def ring(*words: str) -> tokens.Keyring:
    return tokens.Keyring(tokens.read(words), Clock())


def test_a_token_has_its_scopes() -> None:
    keyring = ring(f"read+submit:{SECRET}")
    assert keyring.locked
    assert keyring.scopes_of_token(SECRET) == {tokens.READ, tokens.SUBMIT}
    assert keyring.scopes_of_token(SECRET + "x") is None
    assert keyring.scopes_of_token("") is None


def test_admin_has_all_scopes() -> None:
    assert ring(f"admin:{SECRET}").scopes_of_token(SECRET) == tokens.EVERYTHING


def test_a_colon_may_be_part_of_a_token() -> None:
    assert ring(f"work:{SECRET}:and:more").scopes_of_token(f"{SECRET}:and:more") == {tokens.WORK}


def test_without_tokens_nothing_is_locked() -> None:
    assert not ring().locked


@pytest.mark.parametrize(
    "word", [SECRET, f"reed:{SECRET}", f":{SECRET}", "read:short", f"read:{SECRET} blank", f"read+:{SECRET}"]
)
def test_a_bad_token_is_refused_and_never_quoted(word: str) -> None:
    with pytest.raises(StartError, match="token 1") as refused:
        tokens.read([word])
    assert SECRET not in str(refused.value)
    assert "short" not in str(refused.value)


def test_tokens_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"# who may look\nread:{SECRET}\n\n  work:{SECRET}2  \n")
    found = tokens.Keyring(tokens.read([], str(file)), Clock())
    assert found.scopes_of_token(SECRET) == {tokens.READ}
    assert found.scopes_of_token(SECRET + "2") == {tokens.WORK}


def test_a_bad_line_of_a_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"read:{SECRET}\nnonsense\n")
    with pytest.raises(StartError, match="tokens, line 2"):
        tokens.read([], str(file))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="No such file"):
        tokens.read([], str(tmp_path / "none"))


def test_a_session_expires() -> None:
    clock = Clock()
    keyring = tokens.Keyring(tokens.read([f"read:{SECRET}"]), clock)
    session = keyring.log_in(frozenset({tokens.READ}))
    assert keyring.scopes_of_session(session) == {tokens.READ}
    assert keyring.scopes_of_token(session) is None
    clock.now += tokens.SESSION_SECONDS
    assert keyring.scopes_of_session(session) is None


def test_logging_out_ends_a_session() -> None:
    keyring = ring(f"read:{SECRET}")
    session = keyring.log_in(frozenset({tokens.READ}))
    keyring.log_out(session)
    assert keyring.scopes_of_session(session) is None


def test_the_number_of_sessions_is_bounded() -> None:
    keyring = ring(f"read:{SECRET}")
    first = keyring.log_in(frozenset({tokens.READ}))
    for _ in range(1000):
        last = keyring.log_in(frozenset({tokens.READ}))
    assert keyring.scopes_of_session(first) is None
    assert keyring.scopes_of_session(last) == {tokens.READ}
