"""The verbs about the server and its workers."""

from typing import Final

from geartrain.admin.verbs.row import (
    BYTES,
    EVENTS,
    INTEGER,
    PAGE,
    SERVER,
    TEXT,
    TEXTS,
    WORKER,
    Argument,
    Http,
    Verb,
)

SERVER_VERBS: Final = (
    Verb("ping", SERVER, "Which server answers, and its version"),
    Verb(
        "overview", SERVER, "Counts, rates and latencies of the whole server", http=Http("GET", "/overview"),
    ),
    Verb(
        "history", SERVER, "One sample per second, for charts",
        (Argument("seconds", INTEGER, "How far back", default=300, minimum=1, maximum=86400),),
        http=Http("GET", "/history"),
    ),
    Verb("system", SERVER, "Version, platform, doors and store of the server", http=Http("GET", "/system")),
    Verb(
        "tail", SERVER, "Send events of jobs as they happen",
        (
            Argument("function", BYTES, "Only jobs of this function", default=""),
            Argument("what", TEXTS, "Only these events", choices=EVENTS),
        ),
        streams=True,
    ),
)  # fmt: skip

WORKER_VERBS: Final = (
    Verb(
        "workers", WORKER, "List connected workers of every protocol",
        (Argument("search", TEXT, "Part of a name, an address or a function", default=""), *PAGE),
        http=Http("GET", "/workers"),
    ),
)  # fmt: skip
