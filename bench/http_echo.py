"""A bare echo over HTTP: uvloop, httptools, and no application. What an HTTP server in Python costs at the least.

python bench/http_echo.py       prints its port, and answers each request with its body until stdin ends
"""

import asyncio
import sys

import httptools
import uvloop

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ncontent-length: %d\r\n\r\n%b"


class Echo(asyncio.Protocol):
    """One connection. Answers of one read leave together."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.parser = httptools.HttpRequestParser(self)
        self.out: list[bytes] = []

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)
        if self.out:
            self.transport.write(b"".join(self.out))  # type: ignore[attr-defined]
            self.out.clear()

    # What the parser calls

    def on_message_begin(self) -> None:
        self.target = b""
        self.headers: dict[bytes, bytes] = {}
        self.body: list[bytes] = []

    def on_url(self, url: bytes) -> None:
        self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.lower()] = value

    def on_body(self, part: bytes) -> None:
        self.body.append(part)

    def on_message_complete(self) -> None:
        body = b"".join(self.body)
        self.out.append(HEAD % (len(body), body))


async def main() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Echo, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
