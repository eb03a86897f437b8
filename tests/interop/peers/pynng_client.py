"""MemoDB clients with `pynng`: many contexts on one REQ socket, each with one job.

Called with `url service contexts resend_milliseconds`, the payload on stdin; to it each adds its number. Tells the
results in the order of the contexts, long ones by their SHA-256.
"""

import asyncio
import hashlib
import io
import sys

import cbor2
import contract
import pynng

TIMEOUT_MILLISECONDS = 60_000


async def ask(context: pynng.Context, service: str, payload: bytes) -> bytes:
    await context.asend(cbor2.dumps(["memo01", 2, b"", service, TIMEOUT_MILLISECONDS]) + payload)
    reply = await context.arecv()
    stream = io.BytesIO(reply)
    assert cbor2.CBORDecoder(stream).decode() == ["memo01", 3, b""]
    return reply[stream.tell() :]


async def main() -> None:
    url, service, contexts, resend = sys.argv[1:]
    payload = sys.stdin.buffer.read()
    with pynng.Req0(resend_time=int(resend)) as requests:
        requests.dial(url, block=True)
        peers = [requests.new_context() for _ in range(int(contexts))]
        jobs = [ask(peer, service, payload + b" %d" % number) for number, peer in enumerate(peers)]
        for result in await asyncio.gather(*jobs):
            contract.tell("complete", result if len(result) < 1000 else hashlib.sha256(result).digest())
        for peer in peers:
            peer.close()


asyncio.run(main())
