"""TLS certificates: usable ones, and the errors for others."""

import ssl
import subprocess
from pathlib import Path

import pytest

from geartrain import address
from geartrain.errors import StartError
from geartrain.server import tls
from geartrain.server.config.settings import Settings


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate, its key, the key behind a password, and both in one file."""
    folder = tmp_path_factory.mktemp("tls")
    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-keyout", "key.pem", "-nodes"]
    commands = [
        ["req", "-x509", *new_key, "-out", "cert.pem", "-subj", "/CN=localhost", "-days", "2"],
        ["ec", "-in", "key.pem", "-aes128", "-passout", "pass:secret", "-out", "locked.pem"],
    ]
    for command in commands:
        subprocess.run(["openssl", *command], cwd=folder, check=True, capture_output=True)
    (folder / "both.pem").write_text((folder / "cert.pem").read_text() + (folder / "key.pem").read_text())
    (folder / "empty.pem").write_text("")
    return folder


def context(folder: Path, certificate: str, key: str = "", ca: str = "") -> ssl.SSLContext:
    paths = [str(folder / name) if name else "" for name in (certificate, key, ca)]
    settings = Settings(tls_certificate=paths[0], tls_key=paths[1], tls_ca=paths[2])
    made = tls.ServerTls(settings, ()).context(address.parse("gearmans://127.0.0.1"))
    assert made is not None
    return made


@pytest.mark.parametrize(("certificate", "key"), [("cert.pem", "key.pem"), ("both.pem", "")])
def test_certificate_is_used(folder: Path, certificate: str, key: str) -> None:
    made = context(folder, certificate, key)
    assert made.verify_mode is ssl.CERT_NONE
    assert made.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_authorities_make_certificates_compulsory(folder: Path) -> None:
    made = context(folder, "cert.pem", "key.pem", "cert.pem")
    assert made.verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize(
    ("certificate", "key", "why"),
    [
        ("absent.pem", "key.pem", "No such file"),
        ("cert.pem", "absent.pem", "No such file"),
        ("cert.pem", "", ""),
        ("empty.pem", "key.pem", ""),
        ("cert.pem", "locked.pem", "the key is encrypted; use a key without a password"),
    ],
)
def test_unusable_certificate(folder: Path, certificate: str, key: str, why: str) -> None:
    with pytest.raises(StartError) as caught:
        context(folder, certificate, key)
    said = str(caught.value)
    assert said.startswith(f"cannot load the TLS certificate and key from {folder / certificate}")
    assert why in said


@pytest.mark.parametrize("ca", ["absent.pem", "empty.pem"])
def test_unusable_authorities(folder: Path, ca: str) -> None:
    with pytest.raises(StartError, match="cannot load the TLS authorities from"):
        context(folder, "cert.pem", "key.pem", ca)
