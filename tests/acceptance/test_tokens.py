"""Tokens from their creation on the command line to their revocation, and the reload that applies it."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import process, serving
from tests.support.gearman_peer import Peer
from tests.support.http_peer import Peer as HttpPeer


def geartrain(home: Path, *words: str, code: int = 0, **variables: str) -> subprocess.CompletedProcess[str]:
    """The installed command, with a home of its own; it has to end with this code and without a traceback."""
    environment = {**process.clean_environment(home), **variables}
    command = [str(serving.installed_command()), *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode == code, done.stderr
    return done


def create(users: Path, name: str, may: str) -> str:
    """A new token, as the command prints it."""
    return geartrain(users.parent, "token", "create", name, "--may", may, "--users-file", str(users)).stdout.strip()


# The commands


def test_create_prints_the_token_alone(tmp_path: Path) -> None:
    done = geartrain(tmp_path, "token", "create", "mailer", "--may", "submit:mail.*,read")
    assert done.stdout.startswith("gt_")
    assert len(done.stdout.split()) == 1
    assert "geartrain reload" in done.stderr
    assert done.stdout.strip() not in done.stderr
    assert (tmp_path / "config" / "geartrain" / "users.toml").stat().st_mode & 0o777 == 0o600
    answer = json.loads(geartrain(tmp_path, "token", "create", "mailer", "--json").stdout)
    assert (answer["user"], answer["may"]) == ("mailer", ["submit:mail.*", "read"])
    listed = geartrain(tmp_path, "token", "list").stdout
    assert answer["id"] in listed
    assert "submit:mail.* read" in listed
    assert answer["token"] not in listed
    assert "sha256" not in listed


def test_create_says_that_rights_are_replaced(tmp_path: Path) -> None:
    geartrain(tmp_path, "token", "create", "mailer", "--may", "read")
    done = geartrain(tmp_path, "token", "create", "mailer", "--may", "work:resize")
    assert "replaced: read." in done.stderr
    assert "may now: work:resize." in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["create", "mailer", "--may", "reed"], 1, "'reed' is not a right"),
        (["create", "mailer"], 1, "there is no user mailer yet"),
        (["create", "mailer", "--may", ","], 2, "not empty"),
        (["revoke", "mailer"], 1, "there is no users file"),
    ],
)
def test_mistakes_are_explained(tmp_path: Path, words: list[str], code: int, text: str) -> None:
    assert text in geartrain(tmp_path, "token", *words, code=code).stderr
    assert not list(tmp_path.rglob("users.toml"))


def test_users_file_of_the_settings(tmp_path: Path) -> None:
    settings = tmp_path / "geartrain.toml"
    users = tmp_path / "people.toml"
    settings.write_text(f'users_file = "{users}"\n[users.boss]\nmay = ["admin"]\n')
    done = geartrain(tmp_path, "token", "create", "boss", "--may", "read", "--config", str(settings), code=1)
    assert "the user boss is in the settings file" in done.stderr
    geartrain(tmp_path, "token", "create", "mailer", "--may", "read", GEARTRAIN_CONFIG=str(settings))
    listed = geartrain(tmp_path, "token", "list", "--json", "--config", str(settings)).stdout.splitlines()
    assert [json.loads(line)["user"] for line in listed] == ["boss", "mailer"]


# A server's users


def test_default_users_file_of_a_server(tmp_path: Path) -> None:
    """A file that did not exist at the start is read by the first reload."""
    with serving.serve("--store", "memory", f"--listen=http://{serving.HOST}:0") as server:
        users = server.home / "config" / "geartrain" / "users.toml"
        token = create(users, "reader", "read")
        assert HttpPeer(server.url, token).call("GET", "/session").status == 401
        assert "1 user(s)" in geartrain(tmp_path, "reload", "--server", server.url).stdout
        assert HttpPeer(server.url, token).get("/session")["user"] == "reader"


def test_users_of_the_settings_file(tmp_path: Path) -> None:
    settings, users = tmp_path / "geartrain.toml", tmp_path / "users.toml"
    token = create(users, "mailer", "read")
    settings.write_text(users.read_text().replace("[mailer]", "[users.mailer]"))
    users.unlink()
    words = ("--store", "memory", "--config", str(settings), f"--listen=http://{serving.HOST}:0")
    with serving.serve(*words) as server:
        assert HttpPeer(server.url, token).get("/session")["user"] == "mailer"
        settings.write_text("")
        answer: Any = json.loads(geartrain(tmp_path, "reload", "--json", "--server", server.url).stdout)
        assert answer["users"] == 0
        assert HttpPeer(server.url, token).call("GET", "/session").status == 401


# Reload


def test_reload_applies_and_reports(tmp_path: Path) -> None:
    users = tmp_path / "users.toml"
    kept, revoked = create(users, "kept", "admin"), create(users, "revoked", "admin")
    listen = f"--listen=gearman://{serving.HOST}:0?may=none"
    words = ("--store", "memory", "--users-file", str(users), listen, f"--listen=http://{serving.HOST}:0")
    with serving.serve(*words) as server, Peer(server.port) as first, Peer(server.port) as second:
        assert first.text(f"auth {kept}").line() == second.text(f"auth {revoked}").line() == b"OK\r\n"
        operator = HttpPeer(server.urls[1], kept)
        assert operator.call("POST", "/reload").json == {"users": 2, "certificates": [], "closed_connections": 0}
        geartrain(tmp_path, "token", "revoke", "revoked", "--users-file", str(users))
        assert operator.call("POST", "/reload").json["closed_connections"] == 1
        second.closed()
        users.write_text(users.read_text() + "nonsense = 1\n")
        answer = operator.call("POST", "/reload")
        assert answer.status == 409
        assert "nothing was changed" in answer.json["detail"]
        failed = geartrain(tmp_path, "reload", "--server", server.urls[1], code=1)
        assert "nothing was changed" in failed.stderr
        assert "nonsense" in failed.stderr
        assert first.text("getpid").line() == b"OK %d\n" % server.pid


@pytest.mark.parametrize("scheme", ["gearman", "http"])
def test_reload_answers_before_the_connection_of_the_operator_ends(tmp_path: Path, scheme: str) -> None:
    """Its own token is the one that is revoked."""
    users = tmp_path / "users.toml"
    token = create(users, "leaving", "admin")
    create(users, "staying", "admin")
    listen = f"--listen={scheme}://{serving.HOST}:0?may=none"
    with serving.serve("--store", "memory", "--users-file", str(users), listen) as server:
        (tmp_path / "token").write_text(token)
        words = ("--server", server.url, "--token-file", str(tmp_path / "token"))
        geartrain(tmp_path, "token", "revoke", "leaving", "--users-file", str(users))
        done = geartrain(tmp_path, "reload", *words)
        assert done.stdout == "1 user(s), 1 connection(s) closed\n"
        geartrain(tmp_path, "reload", *words, code=1)


def test_tokens_file_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    secrets = {name: f"secret-of-{name}-0123456789" for name in ("kept", "gone", "changed", "new")}

    def write(*lines: tuple[str, str]) -> None:
        file.write_text("".join(f"{scopes}:{secrets[name]}\n" for scopes, name in lines))

    def statuses(server: serving.ServerProcess) -> list[int]:
        return [HttpPeer(server.url, secret).call("GET", "/overview").status for secret in secrets.values()]

    write(("admin", "kept"), ("read", "gone"), ("read", "changed"))
    listen = f"--listen=http://{serving.HOST}:0"
    with serving.serve("--store", "memory", listen, "--http-tokens-file", str(file)) as server:
        assert statuses(server) == [200, 200, 200, 401]
        operator = HttpPeer(server.url, secrets["kept"])
        gone = HttpPeer(server.url, secrets["gone"]).stream("/events")
        write(("admin", "kept"), ("submit", "changed"), ("read", "new"))
        answer = operator.call("POST", "/reload")
        assert (answer.status, answer.json["closed_connections"]) == (200, 1)
        with gone:
            assert [event.name for event in gone] == ["overview"], "the stream ends"
        assert statuses(server) == [200, 401, 403, 200]
        for content in ("admin:short\n", ""):
            file.write_text(content)
            refused = operator.call("POST", "/reload")
            assert refused.status == 409
            assert "nothing was changed" in refused.json["detail"]
            assert statuses(server) == [200, 401, 403, 200]


def test_reload_needs_admin_for_all_functions(tmp_path: Path) -> None:
    users = tmp_path / "users.toml"
    reader, partial = create(users, "reader", "read"), create(users, "partial", "admin:mail.*")
    listen = f"--listen=http://{serving.HOST}:0?may=none"
    with serving.serve("--store", "memory", "--users-file", str(users), listen) as server:
        for token in (reader, partial):
            assert HttpPeer(server.url, token).call("POST", "/reload").status == 403


def test_changes_are_in_the_audit_file(tmp_path: Path) -> None:
    users, audit = tmp_path / "users.toml", tmp_path / "audit.log"
    geartrain(tmp_path, "token", "create", "ops", "--may", "admin", "--users-file", str(users))
    assert not audit.exists()
    words = ("token", "create", "mailer", "--may", "submit:mail.*", "--users-file", str(users), "--json")
    token = json.loads(geartrain(tmp_path, *words, GEARTRAIN_AUDIT_FILE=str(audit)).stdout)
    assert audit.stat().st_mode & 0o777 == 0o600
    revoke = ("token", "revoke", "mailer", "--users-file", str(users))
    geartrain(tmp_path, *revoke, GEARTRAIN_AUDIT_FILE=str(audit))
    created, revoked = (json.loads(line) for line in audit.read_text().splitlines())
    assert (created["verb"], revoked["verb"]) == ("token create", "token revoke")
    assert created["arguments"] == {"user": "mailer", "id": token["id"], "may": ["submit:mail.*"]}
    assert revoked["arguments"] == {"user": "mailer", "id": token["id"]}
    assert created["protocol"] == "command line"
    assert token["token"] not in audit.read_text()


# The command line with a token

READERS = ("gearman", "periodic", "gearmonkey", "http")
READING = (
    ["status", "--json"],
    ["workers", "--json"],
    ["jobs", "--json"],
    ["show", "{handle}", "--json"],
    ["cron", "list", "--json"],
    ["top", "--once"],
)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[serving.ServerProcess, Path, str]]:
    """A server that gives strangers no rights, a folder with files of tokens, and the handle of a job."""
    folder = tmp_path_factory.mktemp("tokens")
    users = folder / "users.toml"
    for name, may in {"reader": "read", "boss": "admin"}.items():
        (folder / name).write_text(create(users, name, may))
    (folder / "wrong").write_text("gt_wrong-wrong-wrong")
    listens = [f"--listen={scheme}://{serving.HOST}:0?may=none" for scheme in READERS]
    with serving.serve("--store", "memory", "--users-file", str(users), *listens) as server:
        words = ("submit", "reverse", "hello", "--server", server.urls[0], "--token-file", str(folder / "boss"))
        yield server, folder, geartrain(folder, *words).stdout.strip()


@pytest.mark.parametrize("protocol", READERS)
def test_reading_commands_with_a_read_token(guarded: tuple[serving.ServerProcess, Path, str], protocol: str) -> None:
    server, folder, handle = guarded
    url = server.urls[READERS.index(protocol)]
    for words in READING:
        command = [word.format(handle=handle) for word in words]
        options = ("--server", url, "--token-file", str(folder / "reader"))
        geartrain(folder, *command, *options)
    by_environment = {"GEARTRAIN_SERVER": url, "GEARTRAIN_TOKEN": (folder / "reader").read_text()}
    assert handle in geartrain(folder, "jobs", **by_environment).stdout


@pytest.mark.parametrize("protocol", READERS)
def test_refused_commands(guarded: tuple[serving.ServerProcess, Path, str], protocol: str) -> None:
    server, folder, _ = guarded
    url = server.urls[READERS.index(protocol)]
    for words in (["pause", "reverse"], ["reload"], ["submit", "reverse", "x"]):
        done = geartrain(folder, *words, "--server", url, "--token-file", str(folder / "reader"), code=1)
        assert "no right" in done.stderr or "scope" in done.stderr or "refused" in done.stderr
    wrong = geartrain(folder, "status", "--server", url, "--token-file", str(folder / "wrong"), code=1)
    assert "did not accept the token" in wrong.stderr
    assert "gt_wrong" not in wrong.stderr


def test_danga_cannot_carry_the_token(guarded: tuple[serving.ServerProcess, Path, str]) -> None:
    _, folder, _ = guarded
    options = ("--server", "danga://127.0.0.1:9", "--token-file", str(folder / "reader"))
    assert "client certificate" in geartrain(folder, "status", *options, code=1).stderr
