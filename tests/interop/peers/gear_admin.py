"""The administrative requests of the `gear` library: the raw answer to one, as it is written to stdout.

Called with `host port request [argument]`, where the request is a class of the library without its ending.
"""

import sys

import gear


def main() -> None:
    host, port, request, *arguments = sys.argv[1:]
    client = gear.Client("gear-admin")
    client.addServer(host, int(port))
    client.waitForServer()
    asked = getattr(gear, f"{request}AdminRequest")(*arguments)
    [connection] = client.active_connections
    connection.sendAdminRequest(asked, timeout=30)
    sys.stdout.buffer.write(asked.response)
    sys.stdout.flush()
    client.shutdown()


main()
