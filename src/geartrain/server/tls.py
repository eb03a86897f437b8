"""The TLS context of a server's doors."""

import ssl

from geartrain.errors import StartError
from geartrain.server.config.settings import Settings


def context(settings: Settings) -> ssl.SSLContext | None:
    """None without a certificate. Python's defaults stand: TLS 1.2 or newer, its choice of ciphers."""
    if not settings.tls_certificate:
        return None
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        tls.load_cert_chain(settings.tls_certificate, settings.tls_key or None, _no_password)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        files = " and ".join(filter(None, (settings.tls_certificate, settings.tls_key)))
        raise StartError(f"no usable TLS certificate and key in {files}: {_reason(error)}") from None
    if settings.tls_ca:
        _require_certificates(tls, settings.tls_ca)
    return tls


def _require_certificates(tls: ssl.SSLContext, authorities: str) -> None:
    try:
        tls.load_verify_locations(authorities)
    except OSError as error:
        raise StartError(f"no usable TLS authorities in {authorities}: {_reason(error)}") from None
    tls.verify_mode = ssl.CERT_REQUIRED


def _no_password() -> str:
    """Without this, OpenSSL would ask the terminal for the password of an encrypted key, and wait."""
    raise ValueError("the key is encrypted; a server needs one without a password")


def _reason(error: Exception) -> str:
    return getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
