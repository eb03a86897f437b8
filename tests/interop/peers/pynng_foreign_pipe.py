"""A MemoDB worker with `pynng`, and another socket that sends a result and a heartbeat with the worker's id.

Called with `url service`; tells what each is told.
"""

import io
import sys
from typing import Any

import cbor2
import contract
import pynng

READY, JOB, RESULT, HEARTBEAT = 1, 2, 3, 4
TIMEOUT_MILLISECONDS = 60_000


def send(socket: pynng.Req0, header: list[Any], payload: bytes = b"") -> None:
    socket.send(cbor2.dumps(["memo01", *header]) + payload)


def receive(socket: pynng.Req0) -> tuple[int, bytes, bytes]:
    """The type, the id and the payload of a reply."""
    reply = socket.recv()
    stream = io.BytesIO(reply)
    _, kind, id, *_ = cbor2.CBORDecoder(stream).decode()
    return kind, id, reply[stream.tell() :]


def main() -> None:
    url, service = sys.argv[1:]
    with pynng.Req0(dial=url) as client, pynng.Req0(dial=url) as worker, pynng.Req0(dial=url) as foreign:
        send(worker, [READY, b"", [service]])
        send(client, [JOB, b"", service, TIMEOUT_MILLISECONDS], b"payload")
        kind, id, payload = receive(worker)
        contract.tell("worker", f"{kind} {len(id)} {payload.decode()}")
        for message in (RESULT, HEARTBEAT):
            send(foreign, [message, id])
            contract.tell("foreign", str(receive(foreign)[0]))
        send(worker, [RESULT, id], b"honest")
        contract.tell("client", receive(client)[2])


main()
