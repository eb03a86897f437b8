"""Who may do what on this server: users, the rights of addresses, and what changes when they are read again.

A peer has the identity that it proves: by a token, by a client certificate, or by its account on this machine through a
socket file. A peer that proves none has the rights of the address that it connected to: everything on the loopback and
on socket files, `submit` and `work` elsewhere, or what `?may=` of the address says.
"""

import hmac
import ipaddress
import logging
import operator
import pwd
from collections.abc import Mapping
from typing import Any, Final

from geartrain import rights
from geartrain.address import PATH_SCHEMES, Address
from geartrain.admin.views import UserView
from geartrain.doors.access import Access
from geartrain.errors import SettingsError
from geartrain.rights import Identity
from geartrain.server import users
from geartrain.server.users import UserSources
from geartrain.usage import UserUsage

ANONYMOUS: Final = "anonymous"
NOTHING: Final = "none"  # as the value of `may`
# What strangers need to use a job server, and no more.
BEYOND_LOOPBACK: Final = (rights.SUBMIT, rights.WORK)

_NO_LIMITS: Final = UserUsage("")

_log = logging.getLogger("geartrain.server")

# How an identity was proved: the kind of credential, and its value.
Credential = tuple[str, str]


class ServerAccess(Access):
    """The identities of a server's peers."""

    def __init__(self, sources: UserSources, trust_network: bool = False) -> None:
        self._sources = sources
        # `geartrain gearmand` serves gearmand's commands to everybody, as gearmand does, but not the control function.
        self._trust_network = trust_network
        self._network = Identity("network", rights.parse([rights.ADMIN]), control=False)
        self._identities: dict[Credential, Identity] = {}
        self.usages: dict[str, UserUsage] = {}  # by the names of users; also of users that are gone and have jobs
        self._replace(self.read())

    @property
    def has_tokens(self) -> bool:
        """Whether some user has a token."""
        return any(kind == "token" for kind, _ in self._identities)

    @property
    def user_count(self) -> int:
        """The number of users that can prove who they are."""
        return len({identity.name for identity in self._identities.values()})

    def anonymous(self, address: Address) -> Identity | None:
        """The identity of peers at this address that prove no other; None: they may do everything."""
        name = f"{ANONYMOUS} at {address.url_scheme}"
        if address.may is not None:
            words = [] if address.may == NOTHING else rights.split(address.may)
            return Identity(name, rights.parse(words))
        if is_local(address):
            return None
        if self._trust_network:
            return self._network
        _log.warning("strangers may submit and work", extra={"fields": {"address": address}})
        return Identity(name, rights.parse(BEYOND_LOOPBACK))

    def at_host(self, anonymous: Identity | None, host: str) -> Identity | None:
        """The identity of a peer at this IP address that proves no other."""
        return None if anonymous is self._network and is_loopback(host) else anonymous

    def by_certificate(self, certificate: Mapping[str, Any]) -> Identity | None:
        """The user with this client certificate, as `ssl` describes it; None if there is none."""
        return next(
            (found for name in _names(certificate) if (found := self._identities.get(("certificate", name)))), None
        )

    def by_account(self, uid: int) -> Identity | None:
        """The user that an account of this machine stands for, by its id; None if there is none."""
        return self._identities.get(("account", str(uid)))

    def by_token(self, secret: str) -> Identity | None:
        """The user with this token; None if there is none."""
        digest = users.digest(secret)
        found = None
        for (kind, value), identity in self._identities.items():
            # Every token is compared, each in constant time: the duration tells nothing.
            if kind == "token" and hmac.compare_digest(value, digest):
                found = identity
        return found

    def read(self) -> dict[Credential, Identity]:
        """The identities of the users as they are written now; a SettingsError says what is wrong with them."""
        return _identities(self._sources.read())

    def use(self, fresh: dict[Credential, Identity]) -> frozenset[Identity]:
        """Replace the identities; returns those that are no longer valid, whose connections must end."""
        had_users = self.user_count
        ended = self._replace(fresh)
        if had_users or self.user_count:
            _log.info("users reloaded", extra={"fields": {"users": self.user_count}})
        return ended

    def users(self) -> list[UserView]:
        """Every user, with what it may do, and what it has of what its quota allows."""
        may = {identity.name: str(identity.rights).split() for identity in self._identities.values()}
        return [
            UserView(
                name=usage.name,
                may=may.get(usage.name, []),
                connections=usage.connections,
                max_connections=usage.max_connections,
                queued_jobs=usage.jobs,
                max_queued_jobs=usage.max_queued_jobs,
                queued_bytes=usage.bytes,
                max_queued_bytes=usage.max_queued_bytes,
            )
            for usage in sorted(self.usages.values(), key=operator.attrgetter("name"))
            if usage.name in may or not usage.is_unused
        ]

    def _replace(self, fresh: dict[Credential, Identity]) -> frozenset[Identity]:
        before = self._identities
        quotas = {identity.name: identity.usage for identity in fresh.values() if identity.usage is not None}
        # An identity that did not change stays the same object, and so do the connections that have it.
        for credential, identity in before.items():
            new = fresh.get(credential)
            if new is not None and (new.name, str(new.rights)) == (identity.name, str(identity.rights)):
                fresh[credential] = identity
        self._identities = fresh
        self._use_quotas(quotas)
        ended = frozenset(before.values()) - frozenset(fresh.values())
        for identity in ended:
            identity.revoked = True
        return ended

    def _use_quotas(self, quotas: dict[str, UserUsage]) -> None:
        """Take over the limits of users; what they have goes on counting."""
        for name, usage in list(self.usages.items()):
            if name not in quotas and usage.is_unused:
                del self.usages[name]
            else:
                usage.use_limits_of(quotas.get(name, _NO_LIMITS))
        for identity in self._identities.values():
            identity.usage = self.usages.setdefault(identity.name, quotas[identity.name])


def is_local(address: Address) -> bool:
    """Whether only this machine can connect to the address."""
    if address.scheme in PATH_SCHEMES or address.host == "localhost":
        return True
    return is_loopback(address.host)


def is_loopback(host: str) -> bool:
    """Whether an IP address is this machine's own."""
    try:
        return ipaddress.ip_address(host.removeprefix("::ffff:")).is_loopback
    except ValueError:  # a name, or `*`
        return False


def _identities(by_name: users.Users) -> dict[Credential, Identity]:
    identities: dict[Credential, Identity] = {}
    for name, user in by_name.items():
        granted = rights.parse(user.may)
        quota = UserUsage(name, user.max_connections, user.max_queued_jobs, user.most_bytes)
        credentials = [("token", token.digest) for token in user.tokens]
        credentials += [("certificate", certificate) for certificate in user.certificates]
        credentials += [("account", str(pwd.getpwnam(account).pw_uid)) for account in user.accounts]
        for credential in credentials:
            if credential in identities:
                other = identities[credential].name
                raise SettingsError(f"the users {other} and {name} have the same {credential[0]}")
            identities[credential] = identity = Identity(name, granted)
            identity.usage = quota
    return identities


def _names(certificate: Mapping[str, Any]) -> list[str]:
    """The names in a client certificate: alternative names first, then the common name."""
    alternative = [value for _, value in certificate.get("subjectAltName", ())]
    common = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    return [*alternative, *common]
