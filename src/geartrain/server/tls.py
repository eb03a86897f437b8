"""TLS of the server's listening sockets: their contexts, and new certificates while the server runs.

A listening socket has one context for its whole life, and OpenSSL cannot replace what a context has loaded. So each
handshake asks the first context, which hands over to the one that was loaded last; connections that are open stay.

A resumed session skips the check of the client's certificate. TLS 1.3 and tickets offer none where certificates are
checked; OpenSSL's cache of TLS 1.2 sessions cannot be emptied, so sessions from before the last reload are refused.
"""

import asyncio
import contextlib
import logging
import os
import ssl
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from geartrain.address import Address
from geartrain.doors.tls_listener import reason
from geartrain.errors import StartError
from geartrain.server import revocation
from geartrain.server.config import listener_tls
from geartrain.server.config.listener_tls import OPTIONAL, ListenerTls
from geartrain.server.config.settings import Settings
from geartrain.server.revocation import CertificateId

WATCH_SECONDS: Final = 10.0  # between two looks at the files

_VERSIONS: Final = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}

_log = logging.getLogger("geartrain.server")


class ServerContext(ssl.SSLContext):
    """A context that knows when it was loaded, and for which addresses."""

    loaded_at = 0.0
    tls: ListenerTls | None = None
    revoked: frozenset[CertificateId] = frozenset()


class ServerHandshake(ssl.SSLObject):
    """Refuses a session that was made before the authorities and revocation lists were loaded."""

    def do_handshake(self) -> None:
        super().do_handshake()
        context, session = self.context, self.session
        if not self.session_reused or session is None or context.verify_mode is ssl.CERT_NONE:
            return
        assert isinstance(context, ServerContext)
        if session.time <= context.loaded_at:
            raise ssl.SSLError("the session is older than the certificates that the server has loaded")


class ListenerContext:
    """The context of listening sockets with the same TLS, loaded again on request and when its files change."""

    def __init__(self, tls: ListenerTls) -> None:
        self._tls = tls
        self._current = self.context = _load(tls)  # a StartError if the files cannot be used
        self.context.sni_callback = self._use_current  # called for every handshake, with or without a server name
        self._stamps = self._read_stamps()

    @property
    def changed(self) -> bool:
        """Whether the files have changed since they were loaded."""
        return self._read_stamps() != self._stamps

    def load(self) -> ServerContext:
        """A context with the files as they are now; a StartError, which is logged, if they cannot be used."""
        self._stamps = self._read_stamps()
        try:
            return _load(self._tls)
        except StartError as error:
            _log.error("TLS certificate not reloaded", extra={"fields": {"why": str(error)}})
            raise

    def use(self, context: ServerContext) -> None:
        """Use this context for new connections."""
        self._current = context
        _log.info("TLS certificate reloaded", extra={"fields": {"file": self._tls.certificate}})

    def is_revoked(self, certificate: bytes) -> bool:
        """Whether the revocation lists name this certificate, in DER."""
        return revocation.certificate_id(certificate) in self._current.revoked

    def _use_current(self, connection: Any, name: str | None, first: ssl.SSLContext) -> None:
        connection.context = self._current

    def _read_stamps(self) -> list[tuple[int, int, int] | None]:
        """What tells one version of the files from the next; None for a file that is missing."""
        return [_stamp(path) for path in self._tls.files]


class ServerTls:
    """The contexts of a server's addresses."""

    def __init__(self, settings: Settings, addresses: Iterable[Address]) -> None:
        self._settings = settings
        self._contexts: dict[ListenerTls, ListenerContext] = {}
        self._next_look: asyncio.TimerHandle | None = None
        # All are loaded at once: a server whose files cannot be used does not even open its store.
        for address in addresses:
            self.context(address)

    def context(self, address: Address) -> ssl.SSLContext | None:
        """The context of a listening address, or None if it has no TLS; a StartError if its files cannot be used."""
        if not address.tls:
            return None
        tls = listener_tls.of_address(address, self._settings)
        if tls not in self._contexts:
            self._contexts[tls] = ListenerContext(tls)
        return self._contexts[tls].context

    @property
    def certificates(self) -> list[str]:
        """The files of the certificates in use."""
        return list(dict.fromkeys(tls.certificate for tls in self._contexts))

    def load(self) -> list[ServerContext]:
        """New contexts with the files as they are now; a StartError if some cannot be used."""
        return [context.load() for context in self._contexts.values()]

    def use(self, loaded: Iterable[ServerContext]) -> None:
        """Use contexts that `load` returned."""
        for context, new in zip(self._contexts.values(), loaded, strict=True):
            context.use(new)

    def is_revoked(self, transport: Any) -> bool:
        """Whether the client certificate of a connection has been revoked since its handshake."""
        connection = transport.get_extra_info("ssl_object")
        if connection is None or not isinstance(connection.context, ServerContext):
            return False
        context = self._contexts.get(connection.context.tls) if connection.context.tls is not None else None
        certificate = connection.getpeercert(True)
        return context is not None and certificate is not None and context.is_revoked(certificate)

    def watch(self, loop: asyncio.AbstractEventLoop, reloaded: Callable[[], object]) -> None:
        """Reload what has changed, and call `reloaded` then, again and again until `close`."""
        changed = False
        for context in self._contexts.values():
            if context.changed:
                with contextlib.suppress(StartError):  # the old files stay in use
                    context.use(context.load())
                    changed = True
        if changed:
            reloaded()
        self._next_look = loop.call_later(WATCH_SECONDS, self.watch, loop, reloaded)

    def close(self) -> None:
        """Watch no longer."""
        if self._next_look is not None:
            self._next_look.cancel()


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_ino, status.st_size)


def _load(tls: ListenerTls) -> ServerContext:
    """A context with these files. Python's defaults apply to what is not said here, such as the ciphers."""
    context = ServerContext(ssl.PROTOCOL_TLS_SERVER)
    context.loaded_at = time.time()
    context.tls = tls
    context.sslobject_class = ServerHandshake
    context.minimum_version = _VERSIONS[tls.min_version]
    try:
        context.load_cert_chain(tls.certificate, tls.key or None, _refuse_password)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        files = " and ".join(filter(None, (tls.certificate, tls.key)))
        raise StartError(f"cannot load the TLS certificate and key from {files}: {reason(error)}") from None
    if tls.ca:
        _check_client_certificates(context, tls)
    return context


def _check_client_certificates(context: ServerContext, tls: ListenerTls) -> None:
    try:
        context.load_verify_locations(tls.ca)
    except OSError as error:
        raise StartError(f"cannot load the TLS authorities from {tls.ca}: {reason(error)}") from None
    if tls.crl:
        _load_revocation_lists(context, tls.crl)
        context.revoked = revocation.revoked_in(tls.crl)
    context.verify_mode = ssl.CERT_OPTIONAL if tls.client_certificate == OPTIONAL else ssl.CERT_REQUIRED
    # A resumed session would skip the check against authorities that were replaced meanwhile.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0


def _load_revocation_lists(context: ServerContext, path: str) -> None:
    """Load the lists, and nothing else: a certificate in their file would become an authority."""
    before = context.cert_store_stats()
    try:
        context.load_verify_locations(path)
    except OSError as error:
        raise StartError(f"cannot load the TLS revocation lists from {path}: {reason(error)}") from None
    after = context.cert_store_stats()
    if after["crl"] == before["crl"]:
        raise StartError(f"cannot load the TLS revocation lists from {path}: there is none in it")
    if after["x509"] != before["x509"]:
        raise StartError(f"cannot load the TLS revocation lists from {path}: there are certificates in it")
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _refuse_password() -> str:
    """Called for an encrypted key. Without a callback OpenSSL asks the terminal for the password, and waits."""
    raise ValueError("the key is encrypted; use a key without a password")
