"""A WebSocket client for tests, frame by frame."""

import base64
import socket
import struct

from tests.support.peer import PATIENCE


class Socket:
    """One connection to a `memodb+ws` address of this machine."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.stream = self.socket.makefile("rb")

    def ask(self, path: str = "/memo", **changed: str) -> tuple[bytes, dict[bytes, bytes]]:
        """The status line and the fields of the answer to a request for an upgrade."""
        fields = {
            "Host": "localhost",
            "Upgrade": "websocket",
            "Connection": "keep-alive, Upgrade",
            "Sec-WebSocket-Key": base64.b64encode(b"sixteen bytes...").decode(),
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Protocol": "rep.sp.nanomsg.org",
        } | {name.replace("_", "-"): value for name, value in changed.items()}
        lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode())
        status = self.stream.readline().strip()
        found = {}
        while line := self.stream.readline().strip():
            name, _, value = line.partition(b": ")
            found[name] = value
        return status, found

    def send(self, first: int, payload: bytes, mask: bytes = b"\x12\x34\x56\x78") -> None:
        masked = bytes(byte ^ mask[place % 4] for place, byte in enumerate(payload))
        size = bytes([0x80 | len(payload)]) if len(payload) < 126 else struct.pack(">BH", 0xFE, len(payload))
        self.socket.sendall(bytes([first]) + size + mask + masked)

    def receive(self) -> tuple[int, bytes]:
        first, size = self.stream.read(2)
        if size == 126:
            (size,) = struct.unpack(">H", self.stream.read(2))
        return first, self.stream.read(size)

    def close(self) -> None:
        self.stream.close()
        self.socket.close()
