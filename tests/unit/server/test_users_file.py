"""Changes of the users file: what they keep, and what they refuse."""

import os
import stat
import threading
from pathlib import Path

import pytest

from geartrain.errors import SettingsError
from geartrain.server import users, users_file
from geartrain.server.users import UserSources

WRITTEN = """\
# The people of the shop.

[mailer]   # sends mail
may = ["submit:mail.*"]
certificates = ["mailer.example"]

# The last one.
[boss]
may = ["admin"]
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "users.toml"


def test_first_token_makes_the_file_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "new" / "users.toml"
    created = users_file.create_token(path, "mailer", ["submit:mail.*"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert created.is_new_user
    assert created.may == ["submit:mail.*"]
    user = users.read(path)["mailer"]
    assert [token.digest for token in user.tokens] == [users.digest(created.secret)]
    assert user.tokens[0].id == created.id
    assert user.tokens[0].created is not None
    assert created.secret not in path.read_text()
    assert created.secret not in repr(created)
    assert os.listdir(path.parent) == ["users.toml"]


def test_comments_order_owner_and_mode_stay(path: Path) -> None:
    path.write_text(WRITTEN)
    path.chmod(0o640)
    created = users_file.create_token(path, "mailer", None)
    lines = path.read_text().splitlines()
    assert [line for line in lines if not line.startswith("tokens")] == WRITTEN.splitlines()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert created.may == ["submit:mail.*"]
    assert created.replaced is None
    users_file.revoke_tokens(path, created.id)
    assert path.read_text() == WRITTEN


def test_rights_are_replaced_where_they_are_given(path: Path) -> None:
    path.write_text(WRITTEN)
    created = users_file.create_token(path, "boss", ["read", "work:resize"])
    assert (created.may, created.replaced) == (["read", "work:resize"], ["admin"])
    assert users.read(path)["boss"].may == ["read", "work:resize"]


def test_tokens_in_tables_of_their_own(path: Path) -> None:
    first = users.digest("first")
    path.write_text(f'[mailer]\nmay = ["read"]\n\n[[mailer.tokens]]\ndigest = "{first}"\n')
    created = users_file.create_token(path, "mailer", None)
    assert [token.digest for token in users.read(path)["mailer"].tokens] == [first, users.digest(created.secret)]
    assert [removal.id for removal in users_file.revoke_tokens(path, users.Token(first).id)] == [users.Token(first).id]
    assert [token.digest for token in users.read(path)["mailer"].tokens] == [users.digest(created.secret)]


def test_all_tokens_of_a_user_are_revoked_and_the_user_stays(path: Path) -> None:
    path.write_text(WRITTEN)
    ids = [users_file.create_token(path, "mailer", None).id for _ in range(3)]
    kept = users_file.create_token(path, "boss", None)
    assert [(removal.user, removal.id) for removal in users_file.revoke_tokens(path, "mailer")] == [
        ("mailer", id) for id in ids
    ]
    found = users.read(path)
    assert found["mailer"].certificates == ["mailer.example"]
    assert not found["mailer"].tokens
    assert [token.id for token in found["boss"].tokens] == [kept.id]


@pytest.mark.parametrize(
    ("name", "may", "text"),
    [
        ("mailer", ["admn"], "'admn' is not a right"),
        ("stranger", None, "there is no user stranger yet"),
        ("two words", ["read"], "no name of a user"),
        ("", ["read"], "no name of a user"),
    ],
)
def test_refused_tokens_change_nothing(path: Path, name: str, may: list[str] | None, text: str) -> None:
    path.write_text(WRITTEN)
    with pytest.raises(SettingsError, match=text):
        users_file.create_token(path, name, may)
    assert path.read_text() == WRITTEN
    assert os.listdir(path.parent) == ["users.toml"]


@pytest.mark.parametrize(
    ("name", "text"), [("boss", "the user boss has no token"), ("12345678", "no user or token 12345678")]
)
def test_refused_revocations(path: Path, name: str, text: str) -> None:
    path.write_text(WRITTEN)
    with pytest.raises(SettingsError, match=text):
        users_file.revoke_tokens(path, name)
    assert path.read_text() == WRITTEN


def test_file_that_cannot_be_used_is_not_touched(path: Path) -> None:
    path.write_text("[mailer]\nmya = []\n")
    with pytest.raises(SettingsError, match="mya"):
        users_file.create_token(path, "boss", ["admin"])
    assert path.read_text() == "[mailer]\nmya = []\n"


def test_changes_at_the_same_time_are_all_made(path: Path) -> None:
    def create(number: int) -> None:
        users_file.create_token(path, f"user-{number}", ["read"])

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert users.read(path).keys() == {f"user-{number}" for number in range(8)}


# Users in the settings file


def sources(tmp_path: Path, settings: str, in_file: str) -> UserSources:
    (tmp_path / "geartrain.toml").write_text(settings)
    (tmp_path / "users.toml").write_text(in_file)
    return UserSources(str(tmp_path / "users.toml"), str(tmp_path / "geartrain.toml"))


def test_users_of_both_files_are_merged(tmp_path: Path) -> None:
    both = sources(tmp_path, 'backlog = 10\n[users.mailer]\nmay = ["read"]\n', '[boss]\nmay = ["admin"]\n')
    assert {name: user.may for name, user in both.read().items()} == {"mailer": ["read"], "boss": ["admin"]}
    both.refuse_settings_user("boss")
    with pytest.raises(SettingsError, match="the user mailer is in the settings file"):
        both.refuse_settings_user("mailer")


def test_the_same_user_in_both_files_is_an_error(tmp_path: Path) -> None:
    both = sources(tmp_path, '[users.boss]\nmay = ["read"]\n', '[boss]\nmay = ["admin"]\n')
    with pytest.raises(SettingsError, match=r"boss is in .*users\.toml and in .*geartrain\.toml"):
        both.read()


def test_mistake_in_the_settings_file_is_named(tmp_path: Path) -> None:
    both = sources(tmp_path, '[users.boss]\nmay = ["red"]\n', "")
    with pytest.raises(SettingsError, match=r"geartrain\.toml: users: user boss: 'red' is not a right"):
        both.read()


def test_default_file_is_used_if_it_exists(tmp_path: Path) -> None:
    found = UserSources(environment={"XDG_CONFIG_HOME": str(tmp_path)})
    assert found.file == tmp_path / "geartrain" / "users.toml"
    assert found.read() == {}
    users_file.create_token(found.file, "boss", ["admin"])
    assert list(found.read()) == ["boss"]


def test_named_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot read the users file"):
        UserSources(str(tmp_path / "missing.toml")).read()
