"""Settings of the doors: addresses, protocols, access and sockets."""

import dataclasses
from typing import Annotated

from geartrain.address import Address
from geartrain.server.config import types
from geartrain.server.config.types import Description


@dataclasses.dataclass(frozen=True, kw_only=True)
class DoorSettings:
    """Where the server listens."""

    listen: Annotated[
        tuple[Address, ...],
        Description(
            types.ADDRESSES,
            "Listen on this URL; repeat it for more. A host name stands for all its addresses, `*` for every "
            "interface.",
            "every protocol's default port on 127.0.0.1",
        ),
    ] = ()
    danga_on_gearman_port: Annotated[
        bool,
        Description(types.FLAG, "Also accept Danga's protocol of 2005 on the Gearman addresses."),
    ] = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class PeriodicSettings:
    """Of Periodic's protocol."""

    periodic_token: Annotated[
        str,
        Description(
            types.OPTIONAL_TEXT,
            "The token that Periodic peers must send when they connect.",
            "no token is needed",
        ),
    ] = ""
    periodic_quiet: Annotated[
        tuple[Address, ...],
        Description(
            types.ADDRESSES,
            "Do not confirm workers' requests on these addresses: for Node clients before 1.6.",
            "requests are confirmed on every address",
        ),
    ] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class HttpSettings:
    """Of HTTP and WebSocket."""

    http_tokens: Annotated[
        tuple[str, ...],
        Description(
            types.WORDS,
            "Accept only requests with one of these tokens, written `SCOPE:TOKEN`; scopes are read, submit, work and "
            "admin, joined by `+`. Other users can see a command line: prefer the environment or a file.",
            "every request is accepted, and only this machine can connect",
        ),
    ] = ()
    http_tokens_file: Annotated[
        str,
        Description(types.PATH, "A file with one such token per line.", "none"),
    ] = ""
    http_without_token: Annotated[
        bool,
        Description(types.FLAG, "Let other machines connect by HTTP although no token is set."),
    ] = False
    http_hosts: Annotated[
        tuple[str, ...],
        Description(
            types.WORDS,
            "More host names that browsers may use for this server, by HTTP without a token and by WebSocket.",
            "localhost and the loopback addresses",
        ),
    ] = ()
    http_trusted_proxies: Annotated[
        tuple[str, ...],
        Description(
            types.NETWORKS,
            "Reverse proxies whose `X-Forwarded-Proto` and `X-Forwarded-For` are believed, as addresses or networks.",
            "none is believed",
        ),
    ] = ()
    memodb_origins: Annotated[
        tuple[str, ...],
        Description(
            types.ORIGINS,
            "Sites whose pages may open WebSockets (`memodb+ws`), such as `https://app.example`.",
            "pages of this server's own host and port",
        ),
    ] = ()
    http_worker_lease: Annotated[
        float,
        Description(types.DURATION_ABOVE_ZERO, "Remove an HTTP worker that has sent nothing for this long."),
    ] = 60.0
    http_listeners: Annotated[
        int,
        Description(types.COUNT, "How many clients may follow events by HTTP at the same time; more are refused."),
    ] = 1000
    http_listeners_per_client: Annotated[
        int,
        Description(types.COUNT, "How many of these may have the same address; 0 means all of them."),
    ] = 500
    gearmand_http: Annotated[
        bool,
        Description(
            types.FLAG,
            "Answer gearmand's HTTP protocol too: a path that is neither the API's nor the dashboard's is a function. "
            "`geartrain gearmand --protocol http` sets it.",
        ),
    ] = False
    metrics_functions: Annotated[
        int,
        Description(
            types.COUNT, "How many functions have metrics and a history of their own; the others share one total."
        ),
    ] = 1000


@dataclasses.dataclass(frozen=True, kw_only=True)
class AccessSettings:
    """Who may do what."""

    users_file: Annotated[
        str,
        Description(
            types.PATH,
            "A TOML file with users: how each proves who it is, and what it may do.",
            "`~/.config/geartrain/users.toml` or `/etc/geartrain/users.toml`, if there is one",
        ),
    ] = ""
    trust_network: Annotated[
        bool,
        Description(
            types.FLAG,
            "Give peers of other machines that prove no identity all rights, as gearmand does, except to use the "
            "control function.",
        ),
    ] = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class TlsSettings:
    """Certificates."""

    tls_certificate: Annotated[
        str,
        Description(
            types.PATH,
            "The certificate chain (PEM) of addresses with TLS, such as gearmans://; without `listen` the default "
            "ports use TLS.",
            "no TLS",
        ),
    ] = ""
    tls_key: Annotated[
        str,
        Description(types.PATH, "The certificate's private key (PEM).", "the key is in the certificate's file"),
    ] = ""
    tls_ca: Annotated[
        str,
        Description(
            types.PATH,
            "On addresses with TLS, accept only peers with a certificate that one of these authorities has signed "
            "(PEM). `client_certificate` in the URL of an address says otherwise.",
            "peers need no certificate",
        ),
    ] = ""
    tls_crl: Annotated[
        str,
        Description(
            types.PATH,
            "Refuse peers whose certificate is on these revocation lists (PEM); each authority in `tls_ca` that signs "
            "peers' certificates needs one that has not expired.",
            "no certificate is revoked",
        ),
    ] = ""
    tls_min_version: Annotated[
        str, Description(types.choice("1.2", "1.3"), "The lowest version of TLS that is accepted.")
    ] = "1.2"


@dataclasses.dataclass(frozen=True, kw_only=True)
class SocketSettings:
    """Of the sockets of all doors."""

    backlog: Annotated[int, Description(types.COUNT_FROM_ONE, "How many new connections may wait to be accepted.")] = (
        1024
    )
    keepalive: Annotated[bool, Description(types.FLAG, "Use TCP keepalive to detect peers that have disappeared.")] = (
        True
    )
    # A dead peer is detected after idle + interval * count = 120 seconds. The system's default of two hours is too
    # long: a worker that has disappeared would hold its job all that time.
    keepalive_idle: Annotated[
        int, Description(types.SYSTEM_SECONDS, "Seconds without traffic before the first keepalive probe.")
    ] = 60
    keepalive_interval: Annotated[int, Description(types.SYSTEM_SECONDS, "Seconds between keepalive probes.")] = 15
    keepalive_count: Annotated[
        int, Description(types.SYSTEM_COUNT, "How many unanswered keepalive probes end a connection.")
    ] = 4
