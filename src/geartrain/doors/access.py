"""Who a peer is: what a door asks of the server about a new connection, a certificate or a token."""

from collections.abc import Mapping
from typing import Any

from mypy_extensions import mypyc_attr

from geartrain.address import Address
from geartrain.rights import Identity


@mypyc_attr(allow_interpreted_subclasses=True)
class Access:
    """The answers of a server without users: every peer may do everything. The server has a subclass."""

    @property
    def has_tokens(self) -> bool:
        """Whether a peer can prove its identity by a token."""
        return False

    def anonymous(self, address: Address) -> Identity | None:
        """The identity of peers at this address that prove no other; None: they may do everything."""
        return None

    def at_host(self, anonymous: Identity | None, host: str) -> Identity | None:
        """The identity of a peer at this IP address that proves no other; `anonymous` is that of the address."""
        return anonymous

    def by_certificate(self, certificate: Mapping[str, Any]) -> Identity | None:
        """The user with this client certificate, as `ssl` describes it; None if there is none."""
        return None

    def by_account(self, uid: int) -> Identity | None:
        """The user that an account of this machine stands for, by its id; None if there is none."""
        return None

    def by_token(self, secret: str) -> Identity | None:
        """The user with this token; None if there is none."""
        return None
