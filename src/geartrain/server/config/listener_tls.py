"""The TLS of each listening address, from the settings and from the parameters of its URL.

A certificate and its key belong together, and so do authorities and their revocation lists: an address whose URL names
the first of a pair takes neither from the settings.
"""

from typing import NamedTuple

from geartrain.address import TLS_SCHEMES, Address
from geartrain.errors import SettingsError
from geartrain.server.config.settings import Settings

REQUIRED, OPTIONAL, NONE = "required", "optional", "none"


class ListenerTls(NamedTuple):
    """What a listening address loads, and what it asks of its peers. Addresses with equal values share a context."""

    certificate: str
    key: str
    ca: str
    crl: str
    client_certificate: str
    min_version: str

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.certificate, self.key, self.ca, self.crl)))


def of_address(address: Address, settings: Settings) -> ListenerTls:
    """The TLS of an address; a SettingsError says what is missing or contradicts itself."""
    url = address.tls_parameters
    certificate, key = (url.certificate, url.key) if url.certificate else (settings.tls_certificate, settings.tls_key)
    ca, crl = (url.ca, url.crl) if url.ca else (settings.tls_ca, url.crl or settings.tls_crl)
    wanted = url.client_certificate or (REQUIRED if ca else NONE)
    if not certificate:
        raise SettingsError(f"{address} needs a certificate: set tls_certificate, or `certificate` in the URL")
    if url.key and not url.certificate:
        raise SettingsError(f"{address}: `key` needs `certificate` beside it in the URL")
    if wanted == NONE:
        if url.ca or url.crl:
            raise SettingsError(f"{address}: `ca` and `crl` check client certificates, but client_certificate=none")
        ca = crl = ""
    elif not ca:
        raise SettingsError(f"{address}: client_certificate={wanted} needs authorities: set tls_ca, or `ca` in the URL")
    return ListenerTls(certificate, key, ca, crl, wanted, settings.tls_min_version)


def check(settings: Settings) -> None:
    """Refuse settings of TLS that contradict each other."""
    encrypted = [address for address in settings.listen if address.tls]
    for address in encrypted:
        of_address(address, settings)
    if settings.tls_crl and not settings.tls_ca:
        raise SettingsError("tls_crl is set without tls_ca, so no certificate would be checked")
    for name, unused in (("tls_key", True), ("tls_ca", not encrypted)):
        if getattr(settings, name) and unused and not settings.tls_certificate:
            raise SettingsError(f"{name} is set without tls_certificate, so there would be no TLS")
    if settings.tls_certificate and settings.listen and not encrypted:
        # Peers that are meant to be encrypted must not be served in plain text by an oversight.
        schemes = ", ".join(f"{scheme}://" for scheme in TLS_SCHEMES.values())
        raise SettingsError(f"tls_certificate is set, but no listen address uses TLS: write one with {schemes}")
