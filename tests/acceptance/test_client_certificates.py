"""Client certificates: who has which, what is refused and why, and what each address asks for."""

import asyncio
import contextlib
import datetime
import itertools
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import geartrain
from geartrain import address
from geartrain.client import control
from tests.support import certificates, process, serving
from tests.support.certificates import Authority, Certificate
from tests.support.protocol_ends import async_test

SCHEMES = tuple(address.TLS_SCHEMES.values())
USERS = """
[by-common-name]
may = ["submit:mail.*", "read:mail.*"]
certificates = ["mailer"]
[by-alternative-name]
may = ["submit:mail.*", "read:mail.*"]
certificates = ["mailer.example"]
"""


class Files(NamedTuple):
    """What the tests of this module share."""

    authority: Authority
    server: Certificate
    mailer: Certificate
    users: Path

    def flags(self, *listens: str) -> list[str]:
        """Of a server with this certificate and the users, on these addresses."""
        files = [f"--tls-certificate={self.server.both}", f"--tls-ca={self.authority.certificate}"]
        return ["--store=memory", f"--users-file={self.users}", *files, *(f"--listen={url}" for url in listens)]

    def client(self, own: Certificate | None = None) -> ssl.SSLContext:
        """The context of a client that trusts the server."""
        context = ssl.create_default_context(cafile=str(self.authority.certificate))
        if own is not None:
            context.load_cert_chain(own.certificate, own.key)
        return context


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    authority = Authority(tmp_path_factory.mktemp("authority"))
    users = tmp_path_factory.mktemp("users") / "users.toml"
    users.write_text(USERS)
    server = authority.sign("server", f"IP:{serving.HOST}")
    return Files(authority, server, authority.sign("mailer"), users)


def handshake(url: str, context: ssl.SSLContext, session: ssl.SSLSession | None = None) -> ssl.SSLSession | None:
    """Connect, see that the server keeps the connection, and leave in good order; returns the session."""
    port = int(url.rpartition(":")[2])
    with (
        socket.create_connection((serving.HOST, port), timeout=30) as plain,
        context.wrap_socket(plain, server_hostname=serving.HOST, session=session) as encrypted,
    ):
        # A TLS 1.3 server refuses a certificate only after the client's handshake.
        encrypted.sendall(b"getpid\n")
        if encrypted.recv(100) == b"":
            raise ConnectionResetError("closed by the server")
        session = encrypted.session
        encrypted.unwrap()
        return session


def refused(url: str, context: ssl.SSLContext, session: ssl.SSLSession | None = None) -> bool:
    try:
        handshake(url, context, session)
    except (ssl.SSLError, ConnectionError):
        return True
    return False


# Identities


@pytest.fixture(scope="module")
def server(files: Files) -> Iterator[serving.ServerProcess]:
    """Every protocol with TLS; who has no identity may do nothing. The last address is the operator's."""
    listens = [f"{scheme}://{serving.HOST}:0?may=none" for scheme in SCHEMES]
    with serving.serve(*files.flags(*listens, f"gearman://{serving.HOST}:0")) as running:
        yield running


async def job_arrives(server: serving.ServerProcess, url: str, tls: ssl.SSLContext, function: str) -> bool:
    """Submit a job, and tell whether the server has it."""
    denial = f"has no right submit for the function '{function}'"
    async with geartrain.AsyncClient(server.urls[-1]) as operator, geartrain.AsyncClient(url, tls=tls) as client:
        with contextlib.suppress(geartrain.ClientError):
            await client.submit(function, background=client.capabilities.background)
        # MemoDB confirms nothing, and its refusals are in the log only.
        while not (jobs := (await control.ask(operator, "jobs", function=function))["items"]):
            if not client.capabilities.background and denial not in server.stderr:
                await asyncio.sleep(0.01)
                continue
            return False
        return bool(jobs)


@pytest.mark.parametrize("names", [("mailer",), ("any", "DNS:mailer.example")], ids=["common", "alternative"])
@pytest.mark.parametrize("scheme", SCHEMES)
@async_test
async def test_user_of_a_certificate(
    files: Files, server: serving.ServerProcess, scheme: str, names: tuple[str, ...]
) -> None:
    """Its rights hold at every door; a certificate that is no user's has those of the address."""
    url = server.urls[SCHEMES.index(scheme)]
    user = files.client(files.authority.sign(*names))
    stranger = files.client(files.authority.sign("stranger", "DNS:stranger.example"))
    name = f"{scheme}.{len(names)}"
    assert await job_arrives(server, url, user, f"mail.{name}")
    assert not await job_arrives(server, url, user, f"other.{name}")
    assert not await job_arrives(server, url, stranger, f"mail.stranger.{name}")


# What is refused


def expired(authority: Authority) -> Certificate:
    return authority.sign("expired", start=datetime.timedelta(days=-3))


def not_yet_valid(authority: Authority) -> Certificate:
    return authority.sign("early", start=datetime.timedelta(days=3))


def revoked(authority: Authority) -> Certificate:
    certificate = authority.sign("revoked")
    authority.revoke(certificate)
    return certificate


def test_refused_certificates(files: Files, tmp_path: Path) -> None:
    """By TLS 1.2 and 1.3; the log says whose and why."""
    foreign = certificates.self_signed(tmp_path, "mailer")
    cases = {
        "certificate has expired": expired(files.authority),
        "certificate is not yet valid": not_yet_valid(files.authority),
        "certificate revoked": revoked(files.authority),
        "self-signed certificate": foreign,
        "PEER_DID_NOT_RETURN_A_CERTIFICATE": None,
    }
    flags = files.flags(f"gearmans://{serving.HOST}:0")
    with serving.serve(*flags, f"--tls-crl={files.authority.revocations}") as server:
        for (why, own), version in itertools.product(cases.items(), (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)):
            context = files.client(own)
            context.minimum_version = context.maximum_version = version
            with socket.create_connection((serving.HOST, server.port), timeout=30) as plain:
                peer = f"peer={serving.HOST}:{plain.getsockname()[1]} "
                with (
                    contextlib.suppress(ssl.SSLError, ConnectionError),
                    context.wrap_socket(plain, server_hostname=serving.HOST) as encrypted,
                ):
                    assert encrypted.recv(100) == b""
            assert server.says(peer)
            line = next(line for line in server.stderr.splitlines() if peer in line)
            assert "TLS handshake failed" in line
            assert why in line
        handshake(server.url, files.client(files.mailer))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_revoked_certificate_at_every_door(files: Files, scheme: str) -> None:
    own = files.client(revoked(files.authority))
    flags = files.flags(f"{scheme}://{serving.HOST}:0")
    with serving.serve(*flags, f"--tls-crl={files.authority.revocations}") as server:
        assert refused(server.url, own)
        assert server.says("certificate revoked")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_revocation_holds_after_a_reload(files: Files, version: ssl.TLSVersion) -> None:
    """Also for a client that resumes its session, where nothing is verified again."""
    own = files.authority.sign("leaving")
    context = files.client(own)
    context.minimum_version = context.maximum_version = version
    flags = files.flags(f"gearmans://{serving.HOST}:0")
    with serving.serve(*flags, f"--tls-crl={files.authority.revocations}") as server:
        session = handshake(server.url, context)
        files.authority.revoke(own)
        server.signal(signal.SIGHUP)
        assert server.says("TLS certificate reloaded")
        assert refused(server.url, context, session)
        assert refused(server.url, context)
        handshake(server.url, files.client(files.mailer))


def kept_open(url: str, context: ssl.SSLContext) -> ssl.SSLSocket:
    """A connection after its handshake, which a door of any protocol keeps open."""
    plain = socket.create_connection((serving.HOST, int(url.rpartition(":")[2])), timeout=30)
    return context.wrap_socket(plain, server_hostname=serving.HOST)


def wait_for_end(connection: ssl.SSLSocket) -> None:
    """Read until the server ends it, after what the protocol begins with."""
    with contextlib.suppress(ssl.SSLError, ConnectionError):
        while connection.recv(1000):
            pass


@pytest.mark.parametrize("how", ["signal", "verb", "file"])
def test_open_connections_with_a_revoked_certificate_end(files: Files, how: str) -> None:
    """At every door, by each way to reload; other connections stay."""
    leaving = files.authority.sign(f"leaving-{how}")
    listens = [f"{scheme}://{serving.HOST}:0" for scheme in SCHEMES]
    flags = files.flags(*listens, f"gearman://{serving.HOST}:0")
    with (
        serving.serve(*flags, f"--tls-crl={files.authority.revocations}") as server,
        contextlib.ExitStack() as stack,
    ):
        ending = [stack.enter_context(kept_open(url, files.client(leaving))) for url in server.urls[: len(SCHEMES)]]
        staying = stack.enter_context(kept_open(server.urls[SCHEMES.index("gearmans")], files.client(files.mailer)))
        with geartrain.Client(server.urls[-1]) as operator:
            operator_sees = operator.submit(control.FUNCTION, b'{"do": "ping"}').result()
            assert b"geartrain" in operator_sees, "the handshakes before this one are over"
        files.authority.revoke(leaving)
        if how == "signal":
            server.signal(signal.SIGHUP)
        elif how == "verb":
            done = serving.run_command(server.home, "reload", "--server", server.urls[-1])
            assert (done.returncode, done.stderr) == (0, "")
            assert f"{len(SCHEMES)} connection(s) closed" in done.stdout
        for connection in ending:
            wait_for_end(connection)
        assert server.says("its certificate was revoked")
        staying.sendall(b"getpid\n")
        assert staying.recv(100) == b"OK %d\n" % server.pid


@pytest.mark.parametrize("content", ["certificate", "nothing"])
def test_unusable_revocation_lists(files: Files, tmp_path: Path, content: str) -> None:
    """A certificate in their file would become an authority."""
    path = tmp_path / "crl.pem"
    lists, foreign = files.authority.revocations.read_text(), certificates.self_signed(tmp_path).certificate.read_text()
    path.write_text(lists + foreign if content == "certificate" else "")
    flags = files.flags(f"gearmans://{serving.HOST}:0")
    command = [str(serving.installed_command()), "serve", *flags, f"--tls-crl={path}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=process.clean_environment(tmp_path))
    assert done.returncode == 1
    assert f"cannot load the TLS revocation lists from {path}" in done.stderr


def test_lowest_version(files: Files) -> None:
    old = files.client(files.mailer)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with serving.serve(*files.flags(f"gearmans://{serving.HOST}:0"), "--tls-min-version=1.3") as server:
        assert refused(server.url, old)
        handshake(server.url, files.client(files.mailer))


# What each address asks for


def test_each_address_asks_for_certificates_in_its_own_way(files: Files, tmp_path: Path) -> None:
    other = certificates.self_signed(tmp_path)
    base = f"gearmans://{serving.HOST}:0"
    listens = (
        base,
        f"{base}?client_certificate=optional",
        f"{base}?client_certificate=none",
        f"{base}?certificate={other.certificate}&key={other.key}&ca={other.certificate}",
    )
    with serving.serve(*files.flags(*listens)) as server:
        required, optional, none, own = server.urls
        mailer, nobody = files.client(files.mailer), files.client()
        elsewhere = ssl.create_default_context(cafile=str(other.certificate))
        elsewhere.load_cert_chain(other.certificate, other.key)
        table = {
            required: (True, False),
            optional: (True, True),
            none: (True, True),
        }
        for url, allowed in table.items():
            assert (not refused(url, mailer), not refused(url, nobody)) == allowed
        assert not refused(own, elsewhere)
        assert refused(own, mailer)
        assert refused(optional, elsewhere)


def test_optional_certificate_is_an_identity(files: Files) -> None:
    """Peers with one have its user's rights, and others those of the address."""
    listen = f"gearmans://{serving.HOST}:0?client_certificate=optional&may=read"
    with serving.serve(*files.flags(listen)) as server:
        with geartrain.Client(server.url, tls=files.client(files.mailer)) as mailer:
            assert mailer.submit("mail.send", background=True).handle
        with geartrain.Client(server.url, tls=files.client()) as nobody, pytest.raises(geartrain.RefusedError):
            nobody.submit("mail.send", background=True)


def test_addresses_as_tables_of_the_settings_file(files: Files, tmp_path: Path) -> None:
    config = tmp_path / "geartrain.toml"
    config.write_text(
        f'listen = [{{ url = "gearmans://{serving.HOST}:0", client_certificate = "optional", may = ["read"], '
        f'ca = "{files.authority.certificate}", certificate = "{files.server.both}" }}]\n'
    )
    with serving.serve(f"--config={config}", "--store=memory", doors=1) as server:
        handshake(server.url, files.client())
        handshake(server.url, files.client(files.mailer))
