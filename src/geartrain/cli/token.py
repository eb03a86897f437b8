"""`geartrain token`: create, list and revoke the tokens by which peers prove who they are."""

import os
import pwd
import sys
from typing import Annotated, Any, Final

import typer

from geartrain import audit, rights
from geartrain.audit import AuditEntry
from geartrain.cli import command_group, settings_options, tables
from geartrain.server.config import load
from geartrain.server.config.settings import Settings
from geartrain.server.users import User, UserSources

_HEAD: Final = ("USER", "MAY", "TOKEN", "CREATED", "CERTIFICATES", "ACCOUNTS")
_APPLY: Final = "The server uses the change after `geartrain reload`."

_EPILOG: Final = """
**The users file** is the one of the setting `users_file`, else `~/.config/geartrain/users.toml`, else
`/etc/geartrain/users.toml`. It has digests of tokens only. These commands change the file; a server that runs reads it
again on `geartrain reload` or SIGHUP.

**Exit codes.** 0 success; 1 error, printed on stderr; 2 wrong usage.
"""
CREATE_EPILOG: Final = f"""
**Rights** are scopes, each with a pattern for names of functions behind a colon, separated by commas: `submit` (submit
jobs and wait for them), `work` (run jobs), `read` (lists, statistics, payloads), `admin` (everything). `*` in a pattern
stands for any characters; without a pattern a right is for all functions.

**Using a token.** Programs find it in `GEARTRAIN_TOKEN`, or in the file that `GEARTRAIN_TOKEN_FILE` names; commands
have `--token-file`, and the library has `token=`.
{_EPILOG}
**Examples**

- `geartrain token create mailer --may 'submit:mail.*,read:mail.*' > mailer.token`

- `geartrain token create resizer --may work:resize` for a worker of one function

- `geartrain token create mailer` makes a second token for a user, with the same rights: to replace the first without
  a pause, `revoke` that one by its id when the second is in use
"""
LIST_EPILOG: Final = f"""
Tokens are shown by their ids, never the tokens themselves.
{_EPILOG}
**Examples**

- `geartrain token list`

- `geartrain token list --json`
"""
REVOKE_EPILOG: Final = f"""
A user's name revokes all tokens of the user, whose rights, certificates and accounts stay. The connections that use a
revoked token end with the next reload.
{_EPILOG}
**Examples**

- `geartrain token revoke mailer && geartrain reload`

- `geartrain token revoke 9f86d081` revokes one token, by the id that `token list` shows
"""

UsersFile = Annotated[
    str | None,
    settings_options.file_option("users_file", "FILE", "The users file. [default: the one of `geartrain serve`]"),
]
Config = Annotated[str | None, settings_options.config_option("the users file")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def add(app: typer.Typer) -> None:
    """Add the group of commands."""
    commands: command_group.Commands = {
        "create": (create, CREATE_EPILOG),
        "list": (list_tokens, LIST_EPILOG),
        "revoke": (revoke, REVOKE_EPILOG),
    }
    command_group.add(app, "token", "Create, list and revoke tokens, by which peers prove who they are.", commands)


def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The user's name.", show_default=False)],
    may: Annotated[
        str | None,
        typer.Option(
            metavar="RIGHTS",
            help="What the user may do, such as `work:resize,submit:*`; required for a new user, replaces the rights "
            "of another.",
            show_default=False,
        ),
    ] = None,
    users_file: UsersFile = None,
    config: Config = None,
    json: Json = False,
) -> None:
    """Create a token, and the user if there is none of that name. The token is printed this once."""
    from geartrain.server import users_file as file

    settings, sources = _sources(users_file, config)
    sources.refuse_settings_user(name)
    words = rights.split(may) if may is not None else None
    if words == []:
        raise typer.BadParameter("a list of rights is not empty; example: --may 'submit:mail.*,read'")
    token = file.create_token(sources.file, name, words)
    _record(settings, "token create", {"user": name, "id": token.id, "may": token.may})
    if json:
        fields = {"user": token.user, "token": token.secret, "id": token.id, "may": token.may}
        print(tables.json_line({**fields, "file": str(sources.file)}))
    else:
        print(token.secret)
    what = "new user" if token.is_new_user else "user"
    _explain(f"Token {token.id} of the {what} {name} in {sources.file}. Keep it now: only its digest is stored.")
    if token.replaced is not None:
        _explain(f"The rights that {name} had are replaced: {_words(token.replaced)}.")
    _explain(f"{name} may now: {_words(token.may)}.")
    _explain(_APPLY)


def list_tokens(users_file: UsersFile = None, config: Config = None, json: Json = False) -> None:
    """List users with their rights, the ids of their tokens, certificates and accounts."""
    _, sources = _sources(users_file, config)
    users = sources.read()
    if json:
        tables.print_lines(tables.json_line(_shown(name, user)) for name, user in users.items())
    elif users:
        rows = [row for name, user in users.items() for row in _rows(name, user)]
        tables.print_lines(tables.table(_HEAD, rows))
    else:
        tables.print_lines([f"no users in {sources.file}"])


def revoke(
    name: Annotated[
        str, typer.Argument(metavar="NAME|TOKEN-ID", help="A user, or the id of one token.", show_default=False)
    ],
    users_file: UsersFile = None,
    config: Config = None,
    json: Json = False,
) -> None:
    """Revoke all tokens of a user, or one token."""
    from geartrain.server import users_file as file

    settings, sources = _sources(users_file, config)
    sources.refuse_settings_user(name)
    for removal in file.revoke_tokens(sources.file, name):
        _record(settings, "token revoke", {"user": removal.user, "id": removal.id})
        if json:
            print(tables.json_line({"user": removal.user, "id": removal.id}))
        else:
            print(f"token {removal.id} of {removal.user} revoked")
    _explain(_APPLY)


def _sources(users_file: str | None, config: str | None) -> tuple[Settings, UserSources]:
    """The settings and the users of `geartrain serve` with these flags."""
    settings = load.load({"users_file": users_file, "config": config})
    return settings, UserSources(settings.users_file, settings.settings_file)


def _record(settings: Settings, verb: str, arguments: dict[str, Any]) -> None:
    """Add an entry to the audit file, if the settings name one. The change itself is made already."""
    if not settings.audit_file:
        return
    entry = AuditEntry(
        time=audit.now(),
        verb=verb,
        who=_account(),
        protocol=audit.COMMAND_LINE,
        arguments=audit.plain(arguments),
    )
    try:
        audit.append(settings.audit_file, entry)
    except OSError as error:
        _explain(f"The change is not in the audit file {settings.audit_file}: {error.strerror}.")


def _account() -> str:
    """The account of this machine that runs the command."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _explain(text: str) -> None:
    print(text, file=sys.stderr)


def _words(may: list[str]) -> str:
    return ", ".join(may) or "nothing"


def _shown(name: str, user: User) -> dict[str, Any]:
    tokens = [{"id": token.id, "created": token.created} for token in user.tokens]
    return {
        "user": name, "may": user.may, "tokens": tokens, "certificates": user.certificates, "accounts": user.accounts
    }  # fmt: skip


def _rows(name: str, user: User) -> list[tuple[str, ...]]:
    """A row for each token; the first has the rest."""
    tokens = [(token.id, token.created.isoformat(" ") if token.created else "") for token in user.tokens] or [("", "")]
    first = (name, " ".join(user.may), *tokens[0], " ".join(user.certificates), " ".join(user.accounts))
    return [first, *(("", "", *token, "", "") for token in tokens[1:])]
