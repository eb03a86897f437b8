"""The verbs about the server and its workers."""

from typing import Final

from geartrain.admin.verbs.row import (
    ADMIN,
    BOOLEAN,
    BYTES,
    DUMP_PARTS,
    EVENTS,
    EVERYBODY,
    INTEGER,
    LOCAL,
    NUMBER,
    PAGE,
    SERVER,
    TEXT,
    TEXTS,
    WORKER,
    Argument,
    CliCommand,
    Http,
    Verb,
)

SERVER_VERBS: Final = (
    Verb("ping", SERVER, "Which server answers, and its version"),
    Verb(
        "overview", SERVER, "Counts, rates and latencies of the whole server", (LOCAL,), place=EVERYBODY,
        http=Http("GET", "/overview"),
    ),
    Verb(
        "history", SERVER, "One sample per second, for charts",
        (Argument("seconds", INTEGER, "How far back", default=300, minimum=1, maximum=86400), LOCAL),
        place=EVERYBODY,
        http=Http("GET", "/history"),
    ),
    Verb("system", SERVER, "Version, platform, doors and store of the server", http=Http("GET", "/system")),
    Verb(
        "reload", SERVER, "Read users, tokens and TLS certificates again, and reopen the log file",
        (), (ADMIN,), changes=True,
        http=Http("POST", "/reload"),
        command=CliCommand(
            "reload", report="{users} user(s), {closed_connections} connection(s) closed",
            epilog="""
The server does what it does on SIGHUP. Connections stay open, except those of users whose rights changed or whose token
or certificate was removed or revoked; yours ends after the answer. If the users, `http_tokens_file` or the certificate
cannot be used, nothing changes and the command fails.

**Examples**

- `geartrain token revoke mailer && geartrain reload`

- `geartrain reload --server gearmans://jobs.example:4730 --token-file admin.token`
""",
        ),
    ),
    Verb(
        "users", SERVER, "List users with their rights, connections, queued jobs and quotas",
        (), (ADMIN,), http=Http("GET", "/users"),
    ),
    Verb(
        "audit", SERVER, "List who did what, newest first",
        (
            Argument(
                "since", NUMBER, "Not before this time, in seconds of the epoch", default=0.0, minimum=0, maximum=1e11
            ),
            Argument("until", NUMBER, "Before this time, as `since`; 0: now", default=0.0, minimum=0, maximum=1e11),
            Argument("who", TEXT, "Only what this user did", default=""),
            Argument("verb", TEXT, "Only this verb", default=""),
            Argument("refused", BOOLEAN, "Only what was refused", default=False),
            *PAGE,
        ),
        (ADMIN,), http=Http("GET", "/audit"),
    ),
    Verb(
        "dump", SERVER, "Lines of a dump of the server: one page of one part",
        (
            Argument("part", TEXT, "What to dump; the header is the first", required=True, choices=DUMP_PARTS),
            Argument("dump", TEXT, "Which dump: `after` of its header", default="", longest=18),
            Argument("after", TEXT, "`after` of the previous page of this part", default="", longest=18),
        ),
        (ADMIN,),
    ),
    Verb(
        "load", SERVER, "Load a dump into a server whose store is in memory",
        (
            Argument("lines", TEXT, "A whole dump, with its first and its last line", required=True, private=True),
            Argument("replace", BOOLEAN, "Replace what conflicts with the dump", default=False),
        ),
        (ADMIN,), changes=True,
    ),
    Verb(
        "tail", SERVER, "Send events of jobs as they happen",
        (
            Argument("function", BYTES, "Only jobs of this function", default=""),
            Argument("what", TEXTS, "Only these events", choices=EVENTS),
            LOCAL,
        ),
        streams=True,
    ),
)  # fmt: skip

WORKER_VERBS: Final = (
    Verb(
        "workers", WORKER, "List connected workers of every protocol",
        (Argument("search", TEXT, "Part of a name, an address or a function", default=""), *PAGE, LOCAL),
        place=EVERYBODY,
        http=Http("GET", "/workers"),
    ),
)  # fmt: skip
