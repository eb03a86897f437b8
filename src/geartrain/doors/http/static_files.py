"""The dashboard: its files as they are in `dashboard/`, and `lib/verbs.js`, which is made from the table of verbs."""

import functools
import hashlib
import re
from pathlib import Path
from typing import Any, Final

import msgspec

from geartrain.admin import verbs
from geartrain.admin.verbs import Button, Http, Verb
from geartrain.doors.http import problems
from geartrain.doors.http.request import Request
from geartrain.doors.http.response import Response

FOLDER: Final = Path(__file__).parent / "dashboard"
INDEX: Final = "index.html"
VERBS_MODULE: Final = "lib/verbs.js"
MEDIA_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".webmanifest": "application/manifest+json",
}
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS: Final = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"}
# No part may begin with a dot, so no path leads out of the folder.
_NAME: Final = re.compile(r"[a-z0-9_-][a-z0-9_.-]*(?:/[a-z0-9_-][a-z0-9_.-]*)*", re.IGNORECASE)


def answer(request: Request) -> Response:
    """A file of the dashboard. Any other path that a browser navigates to gets the page, which shows the view."""
    name = request.path.lstrip("/") or INDEX
    data = _read(name)
    if data is None and "." not in name and "text/html" in request.headers.get("accept", ""):
        name = INDEX
        data = _read(name)
    if data is None:
        return problems.answer("not-found", "no such path")
    if request.method not in ("GET", "HEAD"):
        return problems.answer("method-not-allowed", "this path can only be read", {"Allow": "GET, HEAD"})
    tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
    headers = {**_HEADERS, "ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(data, 200, headers, MEDIA_TYPES[Path(name).suffix])


def exists(name: str) -> bool:
    """Whether the dashboard has such a file."""
    return _read(name) is not None


def _read(name: str) -> bytes | None:
    if name == VERBS_MODULE:
        return verbs_module()
    file = FOLDER / name
    if not _NAME.fullmatch(name) or file.suffix not in MEDIA_TYPES or not file.is_file():
        return None
    return file.read_bytes()


@functools.cache
def verbs_module(rows: tuple[Verb, ...] = tuple(verbs.VERBS.values())) -> bytes:
    """The verbs that have a button and a route, as a JavaScript module."""
    buttons = {verb.name: _button(verb, verb.http, verb.button) for verb in rows if verb.http and verb.button}
    text = msgspec.json.format(msgspec.json.encode(buttons), indent=2)
    return b"// Made from admin/verbs: the verbs by name, for buttons.\nexport const VERBS = %b;\n" % text


def _button(verb: Verb, http: Http, button: Button) -> dict[str, Any]:
    return {
        **button._asdict(),
        "about": verb.about,
        "states": verb.states,
        "action": verb.action,
        "past": verb.past,
        "needs": verb.scopes[0],
        "method": http.method,
        "path": http.path.lstrip("/"),
    }
