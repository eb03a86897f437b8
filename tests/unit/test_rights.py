"""Rights: scopes, and patterns for functions."""

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geartrain import rights
from geartrain.errors import SettingsError
from geartrain.rights import ADMIN, READ, SCOPES, SUBMIT, WORK


@pytest.mark.parametrize("scope", SCOPES)
def test_scope_without_a_pattern_is_for_all_functions(scope: str) -> None:
    granted = rights.parse([scope])
    assert granted.allow(scope, b"anything")
    assert granted.everywhere(scope)
    others = set(SCOPES) - {scope} if scope != ADMIN else set()
    assert not any(granted.allow(other, b"anything") or granted.somewhere(other) for other in others)


def test_admin_includes_the_others_for_the_same_functions() -> None:
    granted = rights.parse(["admin:mail.*"])
    for scope in SCOPES:
        assert granted.allow(scope, b"mail.send")
        assert not granted.allow(scope, b"resize")
        assert granted.somewhere(scope)
        assert not granted.everywhere(scope)


def test_several_rights() -> None:
    granted = rights.parse(["submit:mail.*", "submit:resize", "read"])
    assert granted.allow(SUBMIT, b"mail.send")
    assert granted.allow(SUBMIT, b"resize")
    assert not granted.allow(SUBMIT, b"resize2")
    assert not granted.allow(WORK, b"resize")
    assert granted.allow(READ, b"\xff")


def test_nothing_is_allowed_without_rights() -> None:
    granted = rights.parse([])
    assert not any(granted.allow(scope, b"f") or granted.somewhere(scope) for scope in SCOPES)


def test_many_names_are_not_remembered_for_ever() -> None:
    granted = rights.parse(["submit:a*"])
    for number in range(10_000):
        assert granted.allow(SUBMIT, b"a%d" % number)
        assert not granted.allow(SUBMIT, b"b%d" % number)
    assert len(granted._remembered) <= 4096


@pytest.mark.parametrize("word", ["", "write", "submit:", ":mail", "Submit", "submit mail"])
def test_wrong_right(word: str) -> None:
    with pytest.raises(SettingsError, match="is not a right"):
        rights.parse([word])


@pytest.mark.parametrize("text", ["submit:mail.*,work", "submit:mail.*+work", " submit:mail.*  work "])
def test_words_of_a_text(text: str) -> None:
    assert rights.split(text) == ["submit:mail.*", "work"]


@given(st.text("ab*", min_size=1, max_size=8), st.text("ab", max_size=10))
def test_pattern_matches_as_a_shell_glob_does(pattern: str, name: str) -> None:
    assert rights.parse([f"read:{pattern}"]).allow(READ, name.encode()) == fnmatch.fnmatchcase(name, pattern)
