"""The TLS context of the server's listening sockets."""

import ssl

from geartrain.errors import StartError
from geartrain.server.config.settings import Settings


def context(settings: Settings) -> ssl.SSLContext | None:
    """Build the context; None without a certificate. Python's defaults apply: TLS 1.2 or newer, its ciphers."""
    if not settings.tls_certificate:
        return None
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        tls.load_cert_chain(settings.tls_certificate, settings.tls_key or None, _refuse_password)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        files = " and ".join(filter(None, (settings.tls_certificate, settings.tls_key)))
        raise StartError(f"cannot load the TLS certificate and key from {files}: {_reason(error)}") from None
    if settings.tls_ca:
        _require_client_certificates(tls, settings.tls_ca)
    return tls


def _require_client_certificates(tls: ssl.SSLContext, authorities: str) -> None:
    try:
        tls.load_verify_locations(authorities)
    except OSError as error:
        raise StartError(f"cannot load the TLS authorities from {authorities}: {_reason(error)}") from None
    tls.verify_mode = ssl.CERT_REQUIRED


def _refuse_password() -> str:
    """Called for an encrypted key. Without a callback OpenSSL asks the terminal for the password, and waits."""
    raise ValueError("the key is encrypted; use a key without a password")


def _reason(error: Exception) -> str:
    return getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
