"""Credentials of the library's connections: the TLS context, and the token by which a program proves who it is.

A program passes `token=`, a command has `--token-file`, and otherwise the environment is asked:

    GEARTRAIN_TOKEN         the token
    GEARTRAIN_TOKEN_FILE    a file with the token

`GEARTRAIN_HTTP_TOKEN` and `GEARTRAIN_PERIODIC_TOKEN` are for servers of one protocol, and come before these two.
Danga's protocol and MemoDB's cannot carry a token: the environment is ignored for them, and `token=` is an error.
"""

import ipaddress
import logging
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from geartrain.address import Address
from geartrain.client import tls as default_tls
from geartrain.errors import ClientError, UnsupportedError

VARIABLE: Final = "GEARTRAIN_TOKEN"
FILE_VARIABLE: Final = "GEARTRAIN_TOKEN_FILE"
_VARIABLES_OF_PROTOCOLS: Final = {"http": "GEARTRAIN_HTTP_TOKEN", "periodic": "GEARTRAIN_PERIODIC_TOKEN"}
_WITHOUT_TOKENS: Final = frozenset({"danga", "memodb"})

_log = logging.getLogger("geartrain.client")

_of_command: list[str] = []  # the token that the command line names, if it does
_warned: set[str] = set()  # hosts that get a token unencrypted


class Credentials:
    """What a connection needs to be trusted. It is printed without its secrets."""

    __slots__ = ("tls", "token")

    def __init__(self, tls: ssl.SSLContext | None = None, token: str = "") -> None:
        self.tls = tls
        self.token = token  # empty: none is sent

    def __repr__(self) -> str:
        return f"Credentials(tls={self.tls is not None}, token={bool(self.token)})"


def credentials_for(address: Address, tls: ssl.SSLContext | None, token: str | None) -> Credentials:
    """The credentials for a server: the caller's, or the default ones where the caller has none."""
    context = default_tls.context_for(address, tls)
    secret = _token_for(address, token)
    if secret and context is None and not _is_local(address) and address.host not in _warned:
        _warned.add(address.host)
        _log.warning("the token is sent unencrypted to %s; use a URL with TLS, such as gearmans://", address.host)
    return Credentials(context, secret)


def use_file(path: str) -> None:
    """Use the token in this file for every connection of this process that has no token of its own."""
    _of_command[:] = [read_file(path)]


def command_token() -> str:
    """The token that the command line names; empty if it names none."""
    return _of_command[0] if _of_command else ""


def use_token(token: str) -> None:
    """Use a token as if the command line named it."""
    _of_command[:] = [token]


def _token_for(address: Address, token: str | None) -> str:
    protocol = address.scheme.partition("+")[0]
    if token is None and _of_command:
        token = _of_command[0]
    if protocol in _WITHOUT_TOKENS:
        if token:
            raise UnsupportedError(
                f"{protocol} cannot carry a token; use a client certificate, or gearman, periodic, gearmonkey or http"
            )
        return ""
    secret = _checked(token if token is not None else _from_environment(protocol, os.environ))
    if protocol == "gearman" and " " in secret:
        raise ClientError("gearman cannot carry a token with a space")
    return secret


def _from_environment(protocol: str, environment: Mapping[str, str]) -> str:
    of_protocol = environment.get(_VARIABLES_OF_PROTOCOLS.get(protocol, ""), "")
    token = of_protocol or environment.get(VARIABLE, "")
    if not token and environment.get(FILE_VARIABLE):
        return read_file(environment[FILE_VARIABLE])
    return token


def read_file(path: str) -> str:
    """The token in a file."""
    try:
        token = Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ClientError(f"cannot read the token from {path}: {error.strerror}") from None
    except ValueError:
        raise ClientError(f"cannot read the token from {path}: it is not UTF-8") from None
    if not token:
        raise ClientError(f"the file {path} has no token")
    return _checked(token)


def _checked(token: str) -> str:
    """Refuse what would break a line or a header of a protocol; the error does not quote it."""
    if not token.isprintable():
        raise ClientError("a token consists of printable characters")
    return token


def _is_local(address: Address) -> bool:
    if not address.host or address.host == "localhost":
        return True
    try:
        return ipaddress.ip_address(address.host).is_loopback
    except ValueError:  # a name
        return False
