"""Self-signed certificates for TLS on this machine, made by `openssl`."""

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
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", str(files.key)]
    subject = ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name},IP:127.0.0.1", "-days", "2"]
    command = ["openssl", "req", "-x509", *key, "-out", str(files.certificate), *subject]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    files.both.write_text(files.certificate.read_text() + files.key.read_text())
    return files
