"""Tokens and their scopes, and sessions."""

from pathlib import Path

import pytest

from geartrain import rights
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


def rights_of(keyring: tokens.Keyring, secret: str) -> str | None:
    identity = keyring.by_token(secret)
    return str(identity.rights) if identity is not None else None


def test_a_token_has_its_scopes() -> None:
    keyring = ring(f"read+submit:{SECRET}")
    assert keyring.locked
    assert rights_of(keyring, SECRET) == "read submit"
    assert rights_of(keyring, SECRET + "x") is None
    assert rights_of(keyring, "") is None


def test_admin_has_all_scopes() -> None:
    identity = ring(f"admin:{SECRET}").by_token(SECRET)
    assert identity is not None
    assert all(identity.rights.everywhere(scope) for scope in rights.SCOPES)


def test_a_colon_may_be_part_of_a_token() -> None:
    assert rights_of(ring(f"work:{SECRET}:and:more"), f"{SECRET}:and:more") == "work"


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
    assert rights_of(found, SECRET) == "read"
    assert rights_of(found, SECRET + "2") == "work"


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
    identity = keyring.by_token(SECRET)
    session = keyring.log_in(identity)
    assert keyring.by_session(session) is identity is not None
    assert keyring.by_token(session) is None
    clock.now += tokens.SESSION_SECONDS
    assert keyring.by_session(session) is None


def test_a_session_ends_with_its_user() -> None:
    keyring = ring(f"read:{SECRET}")
    identity = keyring.by_token(SECRET)
    assert identity is not None
    session = keyring.log_in(identity)
    identity.revoked = True
    assert keyring.by_session(session) is None


def test_logging_out_ends_a_session() -> None:
    keyring = ring(f"read:{SECRET}")
    session = keyring.log_in(keyring.by_token(SECRET))
    keyring.log_out(session)
    assert keyring.by_session(session) is None


def test_the_number_of_sessions_is_bounded() -> None:
    keyring = ring(f"read:{SECRET}")
    identity = keyring.by_token(SECRET)
    first = keyring.log_in(identity)
    for _ in range(1000):
        last = keyring.log_in(identity)
    assert keyring.by_session(first) is None
    assert keyring.by_session(last) is identity
