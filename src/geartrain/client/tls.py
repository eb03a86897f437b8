"""TLS of the library's connections: which of them use it, and the context that programs do not have to make themselves.

A URL with TLS (`gearmans://`, `https://` and so on) needs nothing else if the server's certificate is signed by an
authority that this machine trusts. Otherwise the environment names the files, for every program that uses the library:

    GEARTRAIN_TLS_CA             the authorities to trust instead of the machine's (PEM)
    GEARTRAIN_TLS_CERTIFICATE    the certificate by which this program identifies itself (PEM)
    GEARTRAIN_TLS_KEY            its private key, if that is not in the same file (PEM)
"""

import os
import ssl
from collections.abc import Mapping
from typing import Final

from geartrain.address import Address, TlsParameters
from geartrain.errors import ClientError

CA_VARIABLE: Final = "GEARTRAIN_TLS_CA"
CERTIFICATE_VARIABLE: Final = "GEARTRAIN_TLS_CERTIFICATE"
KEY_VARIABLE: Final = "GEARTRAIN_TLS_KEY"


def context_for(address: Address, tls: ssl.SSLContext | None) -> ssl.SSLContext | None:
    """The context of connections to this address: the caller's, or the default one if the URL is one with TLS."""
    if address.tls_parameters != TlsParameters():
        raise ClientError(
            f"the parameters for TLS in the URL of {address} are for servers that listen there; "
            f"clients use {CA_VARIABLE}, {CERTIFICATE_VARIABLE} and {KEY_VARIABLE}"
        )
    if tls is None and address.tls:
        return default_context(os.environ)
    return tls


def default_context(environment: Mapping[str, str]) -> ssl.SSLContext:
    """A context that checks the server's certificate and name, with the files that the environment names."""
    authorities, certificate, key = (
        environment.get(name, "") for name in (CA_VARIABLE, CERTIFICATE_VARIABLE, KEY_VARIABLE)
    )
    try:
        context = ssl.create_default_context(cafile=authorities or None)
    except OSError as error:
        raise ClientError(f"cannot load the TLS authorities from {authorities}: {_reason(error)}") from None
    if certificate:
        try:
            context.load_cert_chain(certificate, key or None)
        except OSError as error:
            files = " and ".join(filter(None, (certificate, key)))
            raise ClientError(f"cannot load the TLS certificate and key from {files}: {_reason(error)}") from None
    return context


def _reason(error: OSError) -> str:
    return getattr(error, "reason", None) or error.strerror or str(error)
