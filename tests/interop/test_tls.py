"""Real clients over TLS, identified by certificates and tokens: by themselves where they can, else through stunnel.

Debian's libgearman is built without TLS, so `gearman` and PHP's extension go through stunnel. Perl's library, redis-cli
and curl speak TLS themselves; aio-periodic takes a transport that does.
"""

import contextlib
import hashlib
import itertools
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import geartrain
from tests.interop.libraries import GEARMAN, PERL, PHP, Library
from tests.interop.peer import Ask, Client, Hire, Spawn, Worker
from tests.support import process, serving
from tests.support.certificates import Authority, Certificate

TOKEN = "a-token-of-the-mailer-for-tests"
SCHEMES = ("gearmans", "gearmonkeys", "periodics", "https")
HERE = Path(__file__).parent

_serial = itertools.count(1)


class Place(NamedTuple):
    """A server at which peers without an identity may do nothing, and what its user `mailer` has to prove who it is."""

    server: serving.ServerProcess
    authority: Authority
    mailer: Certificate

    @property
    def ca(self) -> Path:
        return self.authority.certificate

    def port(self, scheme: str) -> int:
        return int(self.server.urls[SCHEMES.index(scheme)].rpartition(":")[2])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("tls")
    authority = Authority(folder)
    own = authority.sign("server", f"IP:{serving.HOST}", "DNS:localhost")
    mailer = authority.sign("mailer")
    users = folder / "users.toml"
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    users.write_text(
        '[mailer]\nmay = ["submit:mail.*", "work:mail.*", "read:mail.*"]\ncertificates = ["mailer"]\n'
        f'tokens = [{{ digest = "sha256:{digest}" }}]\n'
    )
    files = [f"--tls-certificate={own.both}", f"--tls-ca={authority.certificate}", f"--users-file={users}"]
    listens = [f"--listen={scheme}://{serving.HOST}:0?may=none&client_certificate=optional" for scheme in SCHEMES]
    with serving.serve("--store=memory", *files, *listens, f"--listen=gearman://{serving.HOST}:0") as server:
        yield Place(server, authority, mailer)


@pytest.fixture
def function() -> str:
    """The prefix of a worker's functions, which the user may use."""
    return f"mail.{next(_serial)}"


class Tunnel(process.Process):
    """stunnel, which connects to the server with the user's certificate."""

    def __init__(self, place: Place, home: Path) -> None:
        self.port = next(filter(serving.is_free, random.sample(serving.PORTS, 20)))
        config = home / "stunnel.conf"
        config.write_text(
            f"foreground = yes\npid =\n[gearman]\nclient = yes\naccept = {serving.HOST}:{self.port}\n"
            f"connect = {serving.HOST}:{place.port('gearmans')}\nCAfile = {place.ca}\nverifyChain = yes\n"
            f"checkIP = {serving.HOST}\ncert = {place.mailer.certificate}\nkey = {place.mailer.key}\n"
        )
        super().__init__(["stunnel", str(config)], home)


@pytest.fixture(scope="module")
def target(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tunnel]:
    """What libraries without TLS connect to."""
    tunnel = Tunnel(place, tmp_path_factory.mktemp("stunnel"))
    try:
        assert tunnel.says("Configuration successful"), tunnel.account()
        yield tunnel
    finally:
        tunnel.kill()


@pytest.mark.peer("stunnel")
@pytest.mark.parametrize("library", [GEARMAN, PHP], ids=str)
def test_libgearman_through_stunnel(place: Place, library: Library, ask: Ask, hire: Hire, function: str) -> None:
    """The certificate of the tunnel is the identity: the user may use its own functions and no others."""
    hire(library, function)
    assert ask(library, "run", f"{function}-reverse", b"hello").heard() == ["complete olleh"]
    refused = ask(library, "background", f"other.{function}", b"")
    refused.wait()
    assert not any(line.startswith(f"created\t{b'H:'.hex()}") for line in refused.lines)
    assert f"other.{function}" not in known_functions(place)


def known_functions(place: Place) -> set[str]:
    """By the operator's address."""
    with geartrain.Client(place.server.urls[-1]) as operator:
        answer = json.loads(operator.run("geartrain.control", json.dumps({"do": "functions"})))["answer"]
    return {item["name"] for item in answer["items"]}


def with_tls(library: Library, place: Place, own: Certificate) -> Library:
    """The library's scripts, with these files in their environment."""
    files = {"CA": place.ca, "CERTIFICATE": own.certificate, "KEY": own.key}
    environment = ("env", *(f"GEARMAN_TLS_{name}={path}" for name, path in files.items()))
    return library._replace(client=(*environment, *library.client), worker=(*environment, *library.worker))


@pytest.mark.peer("perl-tls")
@pytest.mark.parametrize("user", ["mailer", "stranger"])
def test_perl(place: Place, stack: contextlib.ExitStack, home: Callable[[], Path], function: str, user: str) -> None:
    """With TLS of its own. A certificate that is no user's may do nothing."""
    library = with_tls(PERL, place, place.mailer if user == "mailer" else place.authority.sign(user))
    port = place.port("gearmans")
    if user == "mailer":
        worker = Worker(library, port, function, home())
        stack.callback(worker.kill)
        worker.wait_until_ready()
    client = Client(library, port, ["run", f"{function}-reverse", "", "normal"], home())
    stack.callback(client.kill)
    client.write(b"hello", end=True)
    client.wait()
    assert (f"complete\t{b'olleh'.hex()}" in client.lines) == (user == "mailer")
    assert (f"{function}-reverse" in known_functions(place)) == (user == "mailer")


def redis_cli(place: Place, *words: str) -> str:
    server = ["-h", serving.HOST, "-p", str(place.port("gearmonkeys")), "--tls", "--cacert", str(place.ca)]
    done = subprocess.run(["redis-cli", *server, *words], capture_output=True, text=True, timeout=process.PATIENCE)
    return (done.stdout + done.stderr).strip()


@pytest.mark.peer("redis-cli")
def test_redis_cli(place: Place) -> None:
    """By a token and by a certificate."""
    token = ["--pass", TOKEN, "--no-auth-warning"]
    own = ["--cert", str(place.mailer.certificate), "--key", str(place.mailer.key)]
    for proof in (token, ["--user", "mailer", *token], own):
        assert redis_cli(place, *proof, "INCR", "uid:mail.redis").isdigit()
        assert redis_cli(place, *proof, "INCR", "uid:other").startswith("NOPERM ")
    assert redis_cli(place, "INCR", "uid:mail.redis").startswith("NOPERM ")
    assert "WRONGPASS" in redis_cli(place, "--pass", "nonsense", "--no-auth-warning", "PING")


@pytest.mark.peer("curl")
def test_curl(place: Place) -> None:
    """By a token, by a certificate, and by neither."""
    url = f"https://{serving.HOST}:{place.port('https')}/api/v1/jobs"
    own = ["--cert", str(place.mailer.certificate), "--key", str(place.mailer.key)]
    for proof, statuses in (
        (["--header", f"Authorization: Bearer {TOKEN}"], ("201", "403")),
        (own, ("201", "403")),
        ([], ("401", "401")),
    ):
        for function, expected in zip(("mail.curl", "other"), statuses, strict=True):
            command = ["curl", "--silent", "--cacert", str(place.ca), *proof, "--output", "/dev/null"]
            command += ["--write-out", "%{http_code}", "--json", json.dumps({"function": function}), url]
            done = subprocess.run(command, capture_output=True, text=True, timeout=process.PATIENCE)
            assert done.stdout == expected, done.stderr


@pytest.mark.peer("aio-periodic-1.0.0")
@pytest.mark.parametrize("proof", ["token", "certificate", "nothing"])
def test_aio_periodic(place: Place, spawn: Spawn, proof: str) -> None:
    """With a transport of ours around its connection; it registers with a name and a token, or with a certificate."""
    python = Path(sys.prefix) / "peers" / "aio-periodic-1.0.0" / "bin" / "python"
    arguments = [str(place.port("periodics")), str(place.ca)]
    arguments += [TOKEN] if proof == "token" else [""]
    arguments += [str(place.mailer.both)] if proof == "certificate" else [""]
    script = spawn(str(python), str(HERE / "periodic" / "tls_client.py"), *arguments)
    assert script.wait() == 0, script.account()
    allowed = proof != "nothing"
    assert script.lines == [f"mail.periodic {allowed}", "other False"]
