"""A site of its own origin, whose pages try to use the server."""

from __future__ import annotations

import contextlib
import http.server
import threading
from collections.abc import Iterator


class Site(http.server.BaseHTTPRequestHandler):
    """An empty page."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>A site</title><link rel=icon href='data:,'>")

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@contextlib.contextmanager
def site() -> Iterator[str]:
    """The origin of a site on this machine."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
