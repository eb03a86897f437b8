"""Reading revocation lists and certificates as far as connections need it."""

import base64
import ssl
import subprocess
from pathlib import Path

import pytest

from geartrain.errors import StartError
from geartrain.server import revocation
from tests.support.certificates import Authority, Certificate


def id_of(certificate: Certificate) -> revocation.CertificateId:
    text = certificate.certificate.read_text()
    return revocation.certificate_id(ssl.PEM_cert_to_DER_cert(text[text.index("-----BEGIN") :]))


def test_lists_name_the_certificates_that_were_revoked(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    first, second = authority.sign("first"), authority.sign("second")
    assert revocation.revoked_in(str(authority.revocations)) == frozenset()
    authority.revoke(first)
    assert revocation.revoked_in(str(authority.revocations)) == {id_of(first)}
    assert id_of(first) != id_of(second)
    authority.revoke(second)
    assert revocation.revoked_in(str(authority.revocations)) == {id_of(first), id_of(second)}
    shown = ["openssl", "x509", "-noout", "-serial", "-in", str(first.certificate)]
    serial = subprocess.run(shown, capture_output=True, text=True, check=True).stdout.strip().removeprefix("serial=")
    assert id_of(first).serial == int(serial, 16)


@pytest.mark.parametrize("contents", [b"", b"!", b"\x30", b"\x30\x82\xff\xff\x00", b"\x30\x02\x30\x00"])
def test_what_is_no_list_is_refused(tmp_path: Path, contents: bytes) -> None:
    path = tmp_path / "list.pem"
    path.write_bytes(b"-----BEGIN X509 CRL-----\n" + base64.b64encode(contents) + b"\n-----END X509 CRL-----\n")
    with pytest.raises(StartError, match="cannot read the TLS revocation lists in"):
        revocation.revoked_in(str(path))
