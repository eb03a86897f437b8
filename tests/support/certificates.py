"""Certificates for TLS on this machine, made by `openssl`: self-signed, or of an authority that can revoke them."""

import datetime
import subprocess
from pathlib import Path
from typing import NamedTuple


class Certificate(NamedTuple):
    """The files of one certificate, all PEM."""

    certificate: Path
    key: Path
    both: Path  # the certificate and its key in one file


def self_signed(folder: Path, name: str = "localhost") -> Certificate:
    """A certificate for `name` and 127.0.0.1."""
    files = Certificate(*(folder / f"{name}-{kind}.pem" for kind in Certificate._fields))
    names = ["-addext", f"subjectAltName=DNS:{name},IP:127.0.0.1"]
    _openssl(
        folder, "req", "-x509", *_key(files.key), "-out", str(files.certificate), *_subject(name), *names, "-days", "2"
    )
    files.both.write_text(files.certificate.read_text() + files.key.read_text())
    return files


_CONFIGURATION = """
[ca]
default_ca = authority
[authority]
database = index.txt
serial = serial
new_certs_dir = .
certificate = authority.pem
private_key = authority.key
default_md = sha256
default_days = 2
default_crl_days = 2
policy = any
copy_extensions = copy
unique_subject = no
[any]
commonName = supplied
"""


class Authority:
    """Signs certificates, and revokes them."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self.certificate = folder / "authority.pem"
        self.revocations = folder / "revocations.pem"
        (folder / "authority.cnf").write_text(_CONFIGURATION)
        (folder / "index.txt").touch()
        (folder / "serial").write_text("01\n")
        _openssl(
            folder,
            "req",
            "-x509",
            *_key(folder / "authority.key"),
            *_subject(name),
            "-days",
            "2",
            "-out",
            "authority.pem",
        )
        self._list_revoked()

    def sign(
        self, name: str, *alternative: str, start: datetime.timedelta | None = None, days: float = 1.0
    ) -> Certificate:
        """A certificate with this common name and these alternative names, such as `DNS:a.example`.

        It is valid from `start` (by default now) for as many days; both may lie in the past.
        """
        files = Certificate(*(self._folder / f"{name}-{kind}.pem" for kind in Certificate._fields))
        names = ["-addext", f"subjectAltName={','.join(alternative)}"] if alternative else []
        _openssl(self._folder, "req", *_key(files.key), *_subject(name), *names, "-out", f"{name}.csr")
        begin = datetime.datetime.now(datetime.UTC) + (start or datetime.timedelta(hours=-1))
        dates = [moment.strftime("%Y%m%d%H%M%SZ") for moment in (begin, begin + datetime.timedelta(days=days))]
        between = ["-startdate", dates[0], "-enddate", dates[1]]
        self._ca("-in", f"{name}.csr", "-out", str(files.certificate), "-notext", *between)
        files.both.write_text(files.certificate.read_text() + files.key.read_text())
        return files

    def revoke(self, revoked: Certificate) -> None:
        """Put it on the revocation list."""
        self._ca("-revoke", str(revoked.certificate))
        self._list_revoked()

    def _list_revoked(self) -> None:
        self._ca("-gencrl", "-out", str(self.revocations))

    def _ca(self, *arguments: str) -> None:
        _openssl(self._folder, "ca", "-batch", "-config", "authority.cnf", *arguments)


def _key(path: Path) -> list[str]:
    return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", str(path)]


def _subject(name: str) -> list[str]:
    return ["-subj", f"/CN={name}"]


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True, timeout=60)
