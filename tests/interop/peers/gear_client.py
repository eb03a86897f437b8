"""A client with the `gear` library."""

import threading
from collections.abc import Callable
from typing import Any

import contract
import gear

PRECEDENCE = {
    "high": gear.PRECEDENCE_HIGH,
    "normal": gear.PRECEDENCE_NORMAL,
    "low": gear.PRECEDENCE_LOW,
}


class Listener:
    """Tells what the library's packet handlers hear, and counts the jobs that ended."""

    def __init__(self, client: gear.Client) -> None:
        self._ended = threading.Semaphore(0)
        for handler, event, argument, is_end in (
            ("handleWorkData", "data", 1, False),
            ("handleWorkWarning", "warning", 1, False),
            ("handleWorkComplete", "complete", 1, True),
            ("handleWorkException", "exception", 1, True),
            ("handleWorkFail", "fail", None, True),
        ):
            told = self._telling(getattr(client, handler), event, argument, is_end)
            setattr(client, handler, told)
        client.handleWorkStatus = self._status

    def _telling(
        self, handle: Callable[[Any], Any], event: str, argument: int | None, is_end: bool
    ) -> Callable[[Any], Any]:
        def told(packet: Any) -> Any:
            job = handle(packet)
            contract.tell(event, b"" if argument is None else packet.getArgument(argument, True))
            if is_end:
                self._ended.release()
            return job

        return told

    def _status(self, packet: Any) -> None:
        contract.tell("status", b"%s/%s" % (packet.getArgument(1), packet.getArgument(2)))

    def wait(self) -> None:
        self._ended.acquire()


def run(client: gear.Client, order: contract.Order) -> None:
    listener = Listener(client)
    client.submitJob(_job(order, order.payload), precedence=PRECEDENCE[order.priority])
    listener.wait()


def background(client: gear.Client, order: contract.Order) -> None:
    job = _job(order, order.payload)
    client.submitJob(job, background=True, precedence=PRECEDENCE[order.priority])
    contract.tell("created", job.handle)


def batch(client: gear.Client, order: contract.Order) -> None:
    ended = threading.Semaphore(0)
    complete = client.handleWorkComplete
    client.handleWorkComplete = lambda packet: (complete(packet), ended.release())
    jobs = [_job(order, line) for line in order.payload.splitlines()]
    for job in jobs:
        client.submitJob(job)
    for _ in jobs:
        ended.acquire()
    for job in jobs:
        contract.tell("complete", b"".join(job.data))


def one_bad_unique(client: gear.Client, order: contract.Order) -> None:
    listener = Listener(client)
    created = 0
    for unique in ("first", "x" * 65, "third"):
        try:
            client.submitJob(gear.Job(order.function, order.payload, unique=unique))
            created += 1
        except gear.GearmanError:
            contract.tell("refused")
    for _ in range(created):
        listener.wait()


def status(client: gear.Client, order: contract.Order) -> None:
    answered = threading.Event()
    job = gear.Job("", b"")
    job.handle = order.function.encode()
    handle = client.handleStatusRes
    client.handleStatusRes = lambda packet: (handle(packet), answered.set())
    [connection] = client.active_connections
    connection.related_jobs[job.handle] = job
    client.sendPacket(gear.Packet(gear.constants.REQ, gear.constants.GET_STATUS, job.handle), connection)
    answered.wait()
    contract.tell_status(job.known, job.running, job.numerator.decode(), job.denominator.decode())


def _job(order: contract.Order, payload: bytes) -> gear.Job:
    return gear.Job(order.function, payload, unique=order.unique.encode() or None)


def main() -> None:
    order = contract.order()
    client = gear.Client("gear-client")
    client.addServer(order.host, order.port)
    client.waitForServer()
    client.setOption("exceptions")
    verbs = {"run": run, "background": background, "batch": batch, "status": status, "one_bad_unique": one_bad_unique}
    verbs[order.verb](client, order)
    client.shutdown()


main()
