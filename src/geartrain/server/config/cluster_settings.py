"""Settings of a server that shares its store with others."""

import dataclasses
from typing import Annotated

from geartrain.server.config import types
from geartrain.server.config.types import Description


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClusterSettings:
    """How this server behaves as one of several on a PostgreSQL store."""

    node_name: Annotated[
        str,
        Description(
            types.TEXT,
            "The name of this server in its cluster. No two servers may have the same. A server that starts again with "
            "its name takes over its jobs at once.",
            "the host name and the port of the first address",
        ),
    ] = ""
    advertise: Annotated[
        str,
        Description(
            types.TEXT,
            "Where the other servers find the peer door of this one, as `host:port`. They link to it, and they try it "
            "before they take this server for dead.",
            "the `peer://` address that it listens on",
        ),
    ] = ""
    lease: Annotated[
        float,
        Description(
            types.LEASE,
            "After this time without a sign of life, 2s to 60s, a server is fenced and its jobs are taken over. After "
            "0.7 of it without an answer from PostgreSQL, a server assigns no background jobs.",
        ),
    ] = 10.0
    store_patience: Annotated[
        float,
        Description(
            types.DURATION,
            "How long a submission waits for a PostgreSQL that does not answer before it is refused.",
        ),
    ] = 60.0
    unique_scope: Annotated[
        str,
        Description(
            types.choice("cluster", "server"),
            "Whether the unique keys of background jobs hold in the whole cluster, or at each server alone.",
        ),
    ] = "cluster"
    cluster_status: Annotated[
        str,
        Description(
            types.choice("cluster", "server"),
            "Whether Gearman's `status`, `prioritystatus` and `workers` are about all servers of the cluster, or about "
            "this one, for a monitor that asks all of them and adds up.",
        ),
    ] = "cluster"
    link_grace: Annotated[
        float,
        Description(
            types.DURATION,
            "How long jobs that run at another server stay there while the link to it is lost. Then they run again "
            "elsewhere.",
        ),
    ] = 2.0
    takeover_jobs: Annotated[
        int, Description(types.COUNT, "How many jobs of other servers this one takes over at most; the rest waits.")
    ] = 2_000_000
