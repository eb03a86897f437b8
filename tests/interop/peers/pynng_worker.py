"""MemoDB workers with `pynng`: many contexts on one REQ socket. Their results are the payloads, backwards.

Called with `url service contexts gate`; tells what each is told. With a gate of 1, a job ends when a line comes on
stdin.
"""

import asyncio
import io
import sys

import cbor2
import contract
import pynng

READY, JOB, RESULT, HEARTBEAT, DISCONNECT = 1, 2, 3, 4, 5


async def work(context: pynng.Context, service: str, gate: bool) -> None:
    ready = cbor2.dumps(["memo01", READY, b"", [service]])
    await context.asend(ready)
    while True:
        reply = await context.arecv()
        stream = io.BytesIO(reply)
        _, kind, id, *_ = cbor2.CBORDecoder(stream).decode()
        payload = reply[stream.tell() :]
        if kind == JOB:
            contract.tell("running", payload[:100])
            if gate:
                await asyncio.to_thread(sys.stdin.readline)
            await context.asend(cbor2.dumps(["memo01", RESULT, id]) + payload[::-1])
        elif kind == HEARTBEAT:
            contract.tell("heartbeat")
            await context.asend(cbor2.dumps(["memo01", HEARTBEAT, id]))
        else:
            contract.tell("disconnect")
            await context.asend(ready)


async def main() -> None:
    url, service, contexts, gate = sys.argv[1:]
    with pynng.Req0() as requests:
        requests.dial(url, block=True)
        workers = [work(requests.new_context(), service, gate == "1") for _ in range(int(contexts))]
        contract.tell("ready")
        await asyncio.gather(*workers)


asyncio.run(main())
