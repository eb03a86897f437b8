"""The verbs about the servers that share a store."""

from typing import Final

from geartrain.admin.verbs.row import ADMIN, CLUSTER, EVERYBODY, LOCAL, TEXT, Argument, CliCommand, Http, Verb

_NAME: Final = Argument("name", TEXT, "The name of the server, as `geartrain cluster` lists it", required=True)

CLUSTER_VERBS: Final = (
    Verb(
        "nodes", CLUSTER, "List the servers that share the store: state, leader, jobs, workers, links",
        (LOCAL,), place=EVERYBODY,
        http=Http("GET", "/cluster", problems=("conflict",)),
    ),
    Verb(
        "drain", CLUSTER, "Stop a server when its running jobs are done, and let the others take its queue",
        (_NAME,), (ADMIN,), changes=True,
        http=Http("POST", "/cluster/{name}/drain"),
        command=CliCommand(
            "drain", group="cluster", report="{name} was asked to stop when its running jobs are done",
            epilog="""
The server assigns no further background jobs, closes its listening sockets, waits for its running jobs (no longer than
its setting `drain_timeout`), and stops. The others then take over the jobs in its queues at once. Every server of the
cluster can be asked to drain any other.

**Examples**

- `geartrain cluster drain mail2:4730`
""",
        ),
    ),
    Verb(
        "fence", CLUSTER, "Take the jobs from a server by force",
        (_NAME,), (ADMIN,), changes=True,
        http=Http("POST", "/cluster/{name}/fence"),
        command=CliCommand(
            "fence", group="cluster", report="{name} is fenced; the other servers take over its jobs",
            epilog="""
**Warning.** If the server is alive, its connections are closed, the foreground jobs of its clients are lost, and jobs
that its workers run now are run a second time by others. Use `geartrain cluster drain` for a server that works.

A server that is dead is fenced without this command when its lease is over. This command is for one that must not wait
for that, or that still commits although it does its work no more. From then on it can write nothing to the store. If it
is alive it notices that, forgets its jobs and starts anew.

**Examples**

- `geartrain cluster fence mail2:4730`
""",
        ),
    ),
)  # fmt: skip
