"""A worker with the `python3-gearman` library, which knows text only."""

import sys

import contract
import python3_gearman
from python3_gearman.job import GearmanJob


class Worker(python3_gearman.GearmanWorker):
    def on_job_exception(self, current_job: GearmanJob, exc_info: tuple[object, object, object]) -> bool:
        """As the library's own documentation shows it: the exception, which the library follows with a failure."""
        self.send_job_exception(current_job, str(exc_info[1]))
        return False


def reverse(worker: Worker, job: GearmanJob) -> str:
    return job.data[::-1]


def empty(worker: Worker, job: GearmanJob) -> str:
    return ""


def unique(worker: Worker, job: GearmanJob) -> str:
    return job.unique


def report(worker: Worker, job: GearmanJob) -> str:
    worker.send_job_status(job, 1, 4)
    worker.send_job_data(job, "part")
    worker.send_job_warning(job, "careful")
    worker.send_job_status(job, 4, 4)
    return "whole"


def die(worker: Worker, job: GearmanJob) -> str:
    raise RuntimeError("it broke")


def gate(worker: Worker, job: GearmanJob) -> str:
    contract.wait_at_gate(job.data)
    return job.data


FUNCTIONS = (reverse, empty, unique, report, die, gate)


def main() -> None:
    host, port, prefix = sys.argv[1:]
    worker = Worker([f"{host}:{port}"])
    worker.set_client_id("python3-gearman-worker")
    for function in FUNCTIONS:
        worker.register_task(f"{prefix}-{function.__name__}", function)
    contract.tell("ready")
    worker.work()


main()
