"""A worker of the servers on the command line, by the library gear; it adds the payload of each job to a file."""

import contextlib
import sys

import gear


def main(path: str, *servers: str) -> None:
    worker = gear.Worker("gear")
    for server in servers:
        host, _, port = server.partition(":")
        worker.addServer(host, int(port))
    worker.waitForServer()
    worker.registerFunction("note")
    with open(path, "ab", buffering=0) as log:
        while True:
            try:
                job = worker.getJob()
            except Exception as error:
                # It has asked a server that is gone, and found out by writing rather than by reading.
                print("getJob:", repr(error), file=sys.stderr, flush=True)
                continue  # gear connects again by itself
            log.write(job.arguments + b"\n")
            with contextlib.suppress(Exception):  # as above
                job.sendWorkComplete(b"noted")


if __name__ == "__main__":
    main(*sys.argv[1:])
