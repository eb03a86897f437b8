"""Which certificates a revocation list names, for connections that are open when a list is loaded.

OpenSSL checks a certificate in the handshake only, and Python's `ssl` cannot ask it again. A certificate is identified
by its issuer and its serial number, in certificates and in lists (RFC 5280, 4.1.2 and 5.1.2). The signature of the list
is not checked here: the server's own settings name the file, and OpenSSL checks it for every new connection.

DER is read as far as it is needed: an element is a tag, a length and contents.
"""

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from geartrain.errors import StartError

_PEM: Final = re.compile(rb"-----BEGIN X509 CRL-----(.*?)-----END X509 CRL-----", re.DOTALL)
_INTEGER: Final = 0x02
_SEQUENCE: Final = 0x30
_TIMES: Final = (0x17, 0x18)  # UTCTime, GeneralizedTime
_VERSION: Final = 0xA0  # [0] of a certificate


class CertificateId(NamedTuple):
    """What tells a certificate from all others."""

    issuer: bytes  # its name, in DER
    serial: int


class _Element(NamedTuple):
    tag: int
    contents: bytes
    whole: bytes


def revoked_in(path: str) -> frozenset[CertificateId]:
    """The certificates that the lists in a file name; a StartError if it cannot be read."""
    try:
        text = Path(path).read_bytes()
        lists = [base64.b64decode(match[1]) for match in _PEM.finditer(text)]
        return frozenset(found for der in lists for found in _revoked(der))
    except (OSError, ValueError, IndexError) as error:  # binascii.Error is a ValueError
        raise StartError(f"cannot read the TLS revocation lists in {path}: {error}") from None


def certificate_id(der: bytes) -> CertificateId:
    """What identifies a certificate; a ValueError if this is none."""
    fields = [field for field in _fields(der) if field.tag != _VERSION]
    return CertificateId(fields[2].whole, int.from_bytes(fields[0].contents, "big", signed=True))


def _revoked(der: bytes) -> Iterator[CertificateId]:
    """A list has an optional version, the algorithm, the issuer, one or two times, and then the certificates."""
    fields = _fields(der)
    if fields[0].tag == _INTEGER:
        del fields[0]
    issuer = fields[1].whole
    rest = [field for field in fields[2:] if field.tag not in _TIMES]
    if rest and rest[0].tag == _SEQUENCE:
        for entry in _elements(rest[0].contents):
            serial = _first(entry.contents)
            yield CertificateId(issuer, int.from_bytes(serial.contents, "big", signed=True))


def _fields(der: bytes) -> list[_Element]:
    """What is signed: the fields of the first part of a certificate or a list."""
    return list(_elements(_first(_first(der).contents).contents))


def _first(der: bytes) -> _Element:
    for element in _elements(der):
        return element
    raise ValueError("an element is missing")


def _elements(der: bytes) -> Iterator[_Element]:
    at = 0
    while at < len(der):
        begin, length = at, der[at + 1]
        at += 2
        if length & 0x80:  # the length has as many bytes
            size = length & 0x7F
            length = int.from_bytes(der[at : at + size], "big")
            at += size
        if at + length > len(der):
            raise ValueError("an element is cut")
        yield _Element(der[begin], der[at : at + length], der[begin : at + length])
        at += length
