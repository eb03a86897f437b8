"""TLS of the server's listening sockets: the context, and new certificates while the server runs.

A listening socket has one context for its whole life, and OpenSSL cannot replace what a context has loaded. So each
handshake asks the first context, which hands over to the one that was loaded last; connections that are open stay.
"""

import asyncio
import logging
import os
import ssl
from typing import Any, Final

from geartrain.errors import StartError
from geartrain.server.config.settings import Settings

WATCH_SECONDS: Final = 10.0  # between two looks at the files

_log = logging.getLogger("geartrain.server")


class ServerHandshake(ssl.SSLObject):
    """Logs a handshake that fails; event loops only close the connection. Neither tells whose it was."""

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise  # more of it has to arrive
        except ssl.SSLError as error:
            _log.warning("TLS handshake failed", extra={"fields": {"peer": "unknown", "why": _reason(error)}})
            raise


class ServerTls:
    """The certificates of a server, loaded again on request and when their files change."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._current = self.context = _load(settings)  # a StartError if the files cannot be used
        self.context.sni_callback = self._use_current  # called for every handshake, with or without a server name
        self._stamps = self._read_stamps()
        self._next_look: asyncio.TimerHandle | None = None

    def reload(self) -> None:
        """Load the files again for new connections; if they cannot be used, the certificates stay as they are."""
        self._stamps = self._read_stamps()
        try:
            self._current = _load(self._settings)
        except StartError as error:
            _log.error("TLS certificate not reloaded", extra={"fields": {"why": str(error)}})
        else:
            _log.info("TLS certificate reloaded", extra={"fields": {"file": self._settings.tls_certificate}})

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Reload whenever the files have changed, until `close`."""
        if self._read_stamps() != self._stamps:
            self.reload()
        self._next_look = loop.call_later(WATCH_SECONDS, self.watch, loop)

    def close(self) -> None:
        """Watch no longer."""
        if self._next_look is not None:
            self._next_look.cancel()

    def _use_current(self, connection: Any, name: str | None, first: ssl.SSLContext) -> None:
        connection.context = self._current

    def _read_stamps(self) -> list[tuple[int, int, int] | None]:
        """What tells one version of the files from the next; None for a file that is missing."""
        settings = self._settings
        paths = (settings.tls_certificate, settings.tls_key, settings.tls_ca)
        return [_stamp(path) for path in paths if path]


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_ino, status.st_size)


def _load(settings: Settings) -> ssl.SSLContext:
    """A context with the certificate. Python's defaults apply: TLS 1.2 or newer, its ciphers."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.sslobject_class = ServerHandshake
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
    # A resumed session would skip the check against authorities that were replaced meanwhile.
    tls.options |= ssl.OP_NO_TICKET
    tls.num_tickets = 0


def _refuse_password() -> str:
    """Called for an encrypted key. Without a callback OpenSSL asks the terminal for the password, and waits."""
    raise ValueError("the key is encrypted; use a key without a password")


def _reason(error: Exception) -> str:
    return getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
