"""A client over TLS: `tls_client.py PORT CA TOKEN CERTIFICATE`, of which the last two may be empty.

It submits a job of two functions, and prints for each whether the server has taken it.
"""

import asyncio
import logging
import ssl
import sys

import aio_periodic

logging.disable()
NAMED_CLIENT = b"\x03"


class TlsTransport(aio_periodic.Transport):
    """The library's transport, with TLS."""

    def __init__(self, port, context):
        super().__init__(f"tcp://127.0.0.1:{port}")
        self.port = port
        self.context = context

    async def get(self):
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=self.context)


def named(name, token):
    """A registration with a name and a token, which the library has no method for."""
    fields = (name.encode(), token.encode())
    return NAMED_CLIENT + b"".join(len(field).to_bytes(8, "big") + field for field in fields)


async def main(port, authorities, token, certificate):
    context = ssl.create_default_context(cafile=authorities)
    if certificate:
        context.load_cert_chain(certificate)
    client = aio_periodic.Client()
    if token:
        client._clientType = named("mailer", token)
    await client.connect(TlsTransport(int(port), context))
    for function in ("mail.periodic", "other"):
        try:
            taken = await asyncio.wait_for(client.submit_job(job=aio_periodic.Job(function, "name")), 15)
        except Exception:
            taken = False
        print(function, taken, flush=True)


asyncio.run(main(*sys.argv[1:]))
