"""A peer that speaks HTTP: one request per connection, with Python's own client."""

import http.client
import json
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

from tests.support.peer import PATIENCE

API = "/api/v1"


class Answer(NamedTuple):
    """What the server said."""

    status: int
    headers: http.client.HTTPMessage
    data: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.data)


class Event(NamedTuple):
    """One of a stream's."""

    name: str
    data: Any


class Stream:
    """Server-sent events, as they come. Comments are kept apart."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self.connection = connection
        self.response = connection.getresponse()
        self.comments: list[str] = []

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self.response.close()
        self.connection.close()

    def __iter__(self) -> Iterator[Event]:
        name, data = "", ""
        while line := self.response.readline().decode():
            field, _, value = line.rstrip("\n").partition(": ")
            if line == "\n" and name:
                yield Event(name, json.loads(data))
                name, data = "", ""
            elif field == "event":
                name = value
            elif field == "data":
                data = value
            elif line.startswith(":"):
                self.comments.append(line.strip())

    def next(self, name: str) -> Any:
        """The data of the next event of that name."""
        return next(event.data for event in self if event.name == name)


class Peer:
    """One who asks a server, perhaps with a token."""

    def __init__(self, url: str, token: str = "", source: str = "") -> None:
        host, _, port = url.rpartition("/")[2].rpartition(":")
        self.host, self.port = host, int(port)
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._source = (source, 0) if source else None  # the address that it connects from

    def send(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> http.client.HTTPConnection:
        """Ask; the answer is still to be read, and the connection to be closed."""
        connection = http.client.HTTPConnection(self.host, self.port, PATIENCE, self._source)
        try:
            connection.request(method, path, body, {**self.headers, **(headers or {})})
        except BaseException:  # the server may have been killed meanwhile
            connection.close()
            raise
        return connection

    def ask(self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> Answer:
        """Ask, and hear the whole answer."""
        connection = self.send(method, path, body, headers)
        try:
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()

    def call(self, method: str, path: str, value: Any = None, data: bytes | None = None, **headers: str) -> Answer:
        """The same below /api/v1, with JSON or with bytes."""
        if value is not None:
            data = json.dumps(value).encode()
            headers.setdefault("content_type", "application/json")
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        return self.ask(method, API + path, data, named)

    def get(self, path: str) -> Any:
        """The JSON of what must be there."""
        answer = self.call("GET", path)
        assert answer.status == 200, answer
        return answer.json

    def post(self, path: str, value: Any = None, data: bytes | None = None) -> Any:
        """The JSON of what must succeed; None where nothing is said."""
        answer = self.call("POST", path, value, data)
        assert 200 <= answer.status < 300, answer
        return answer.json if answer.data else None

    def submit(self, function: str, payload: str = "", **more: Any) -> Any:
        """A job that must be taken."""
        return self.post("/jobs", {"function": function, "payload": payload, **more})

    def stream(self, path: str) -> Stream:
        """Listen to events."""
        return Stream(self.send("GET", API + path))

    def worker(self, *functions: str, **more: Any) -> "HttpWorker":
        """A worker of this server."""
        return HttpWorker(self, self.post("/workers", {"functions": list(functions), **more})["id"])


class HttpWorker:
    """A worker by HTTP."""

    def __init__(self, peer: Peer, id: str) -> None:
        self.peer = peer
        self.path = f"/workers/{id}"

    def claim(self, wait: float = 0) -> Any:
        """The next job, or None."""
        return self.peer.post(f"{self.path}/claim?wait={wait}")

    def report(self, handle: str, what: str, value: Any = None, data: bytes | None = None) -> Answer:
        """Say something about a job."""
        return self.peer.call("POST", f"{self.path}/jobs/{quote(handle, safe='')}/{what}", value, data)

    def complete(self, handle: str, result: bytes = b"") -> None:
        answer = self.report(handle, "complete", data=result)
        assert answer.status == 204, answer

    def leave(self) -> None:
        assert self.peer.call("DELETE", self.path).status == 204
