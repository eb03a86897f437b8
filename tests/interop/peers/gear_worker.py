"""A worker with the `gear` library."""

import sys

import contract
import gear


def reverse(job: gear.WorkerJob) -> None:
    job.sendWorkComplete(job.arguments[::-1])


def empty(job: gear.WorkerJob) -> None:
    job.sendWorkComplete()


def unique(job: gear.WorkerJob) -> None:
    job.sendWorkComplete(job.unique or b"")


def report(job: gear.WorkerJob) -> None:
    job.sendWorkStatus(1, 4)
    job.sendWorkData(b"part")
    job.sendWorkWarning(b"careful")
    job.sendWorkStatus(4, 4)
    job.sendWorkComplete(b"whole")


def fail(job: gear.WorkerJob) -> None:
    job.sendWorkFail()


def die(job: gear.WorkerJob) -> None:
    job.sendWorkException(b"it broke")


def gate(job: gear.WorkerJob) -> None:
    contract.wait_at_gate(job.arguments)
    job.sendWorkComplete(job.arguments)


FUNCTIONS = (reverse, empty, unique, report, fail, die, gate)


def main() -> None:
    host, port, prefix = sys.argv[1:]
    worker = gear.Worker("gear-worker")
    worker.addServer(host, int(port))
    worker.waitForServer()
    functions = {f"{prefix}-{function.__name__}".encode(): function for function in FUNCTIONS}
    for name in functions:
        worker.registerFunction(name)
    contract.tell("ready")
    while True:
        job = worker.getJob()
        functions[job.binary_name](job)


main()
