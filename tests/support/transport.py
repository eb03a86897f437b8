"""Transports for doors that are tested without sockets."""

from typing import Any


class Transport:
    """Takes what a connection writes, and remembers whether it was closed."""

    def __init__(self) -> None:
        self.written = b""
        self.closed = False

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def can_write_eof(self) -> bool:
        return True

    def set_write_buffer_limits(self, high: int) -> None: ...

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 1) if name == "peername" else None

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.written += data

    def writelines(self, parts: list[bytes]) -> None:
        self.write(b"".join(parts))

    def close(self) -> None:
        self.closed = True

    abort = close
    write_eof = close  # the peer sees the same


class PausingTransport(Transport):
    """Takes everything, or, while `full`, keeps it and pauses the connection as asyncio's transports do."""

    def __init__(self, protocol: Any = None) -> None:
        super().__init__()
        self.protocol = protocol
        self.reading = True
        self.full = False
        self.waiting = 0  # bytes that the peer has not read

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def write(self, data: bytes) -> None:
        super().write(data)
        if self.full:
            self.protocol.pause_writing()

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def drain(self) -> None:
        self.full = False
        self.protocol.resume_writing()
