"""The options that say which jobs a command is about: those of `jobs`, `cancel`, `retry` and `delete`."""

import os
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final

import typer

from geartrain.cli import formatting, remote
from geartrain.failure_reasons import reason_group
from geartrain.job_query import STATES, JobQuery, StateName

_PAGE: Final = 1000  # jobs per request
TIMES: Final = """
**Times.** `2h`, `30m` or `7d` ago; `2026-11-15` or `2026-11-15T18:30` in local time; `2026-11-15T18:30Z`; `@1789000000`
in epoch seconds. A finished job is selected by when it ended, any other by when it was submitted.
"""

Function = Annotated[
    str, typer.Option("--function", metavar="NAME", help="Only jobs of this function.", show_default=False)
]
State = Annotated[StateName | None, typer.Option("--state", help="Only jobs in this state.", show_default=False)]
Search = Annotated[
    str,
    typer.Option(
        "--search", metavar="TEXT", help="Part of a handle, function, unique key or payload.", show_default=False
    ),
]
Door = Annotated[
    str, typer.Option("--door", metavar="NAME", help="Only jobs submitted by this protocol.", show_default=False)
]
Reason = Annotated[
    str,
    typer.Option(
        "--reason",
        metavar="TEXT",
        help="Only failed and dead jobs with this reason; numbers, ids, quoted values and addresses may differ.",
        show_default=False,
    ),
]
Since = Annotated[str, typer.Option("--since", metavar="TIME", help="Only jobs since this time.", show_default=False)]
Until = Annotated[str, typer.Option("--until", metavar="TIME", help="Only jobs before this time.", show_default=False)]
OPTIONS: Final[dict[str, Any]] = {
    "function": Function,
    "state": State,
    "search": Search,
    "door": Door,
    "reason": Reason,
    "since": Since,
    "until": Until,
}


def query(
    *,
    function: str,
    state: StateName | None,
    search: str,
    door: str,
    reason: str,
    since: str,
    until: str,
    limit: int = 0,
) -> JobQuery:
    """The query that the options make; wrong usage if one of them is invalid."""
    return JobQuery(
        state=STATES[state] if state is not None else None,
        function=os.fsencode(function),
        search=search.encode("utf-8", "surrogateescape"),
        door=door,
        reason=reason_group(reason),
        since=formatting.parse_past_time(since, "--since"),
        until=formatting.parse_past_time(until, "--until"),
        limit=limit,
    )


def arguments(query: JobQuery) -> dict[str, Any]:
    """The query as the server's verbs take it."""
    return {
        "state": query.state.name.lower() if query.state is not None else "",
        "function": os.fsdecode(query.function),
        "search": query.search.decode("utf-8", "replace"),
        "door": query.door,
        "reason": query.reason,
        "since": query.since,
        "until": query.until,
    }


async def matching(client: Any, query: JobQuery, local: bool = False) -> AsyncIterator[dict[str, Any]]:
    """The jobs of a server that match, newest first: as many as the query's limit, or all."""
    only = remote.only(local)
    left = query.limit
    after = ""
    while True:
        count = min(_PAGE, left) if query.limit else _PAGE
        page = await remote.inquire(client, "jobs", **arguments(query), limit=count, after=after, **only)
        for job in page["items"]:
            yield job
        left -= len(page["items"])
        after = page["after"]
        if not after or (query.limit and left <= 0):
            return
