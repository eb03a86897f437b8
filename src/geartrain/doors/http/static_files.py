"""The dashboard's files, as they lie in `pages/`."""

import hashlib
import re
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from geartrain.doors.http import problems

FOLDER: Final = Path(__file__).parent / "dashboard"
INDEX: Final = "index.html"
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
# No part may begin with a dot, so nothing leads out of the folder.
_NAME: Final = re.compile(r"[a-z0-9_-][a-z0-9_.-]*(?:/[a-z0-9_-][a-z0-9_.-]*)*", re.IGNORECASE)


def answer(request: Request) -> Response:
    """A file of the dashboard; a path that names none is a place in the page, which finds its own way there."""
    name = request.scope["path"].lstrip("/")
    file = _file(name)
    if file is None and "." not in name and "text/html" in request.headers.get("accept", ""):
        file = _file(INDEX)
    if file is None:
        return problems.answer("not-found", "there is nothing at this path")
    if request.method not in ("GET", "HEAD"):
        return problems.answer("method-not-allowed", "this can only be read", {"Allow": "GET, HEAD"})
    data = file.read_bytes()
    tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
    headers = {**_HEADERS, "ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(data, 200, headers, MEDIA_TYPES[file.suffix])


def _file(name: str) -> Path | None:
    name = name or INDEX
    file = FOLDER / name
    if not _NAME.fullmatch(name) or file.suffix not in MEDIA_TYPES or not file.is_file():
        return None
    return file
