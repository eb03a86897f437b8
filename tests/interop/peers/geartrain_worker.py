"""A worker with our own library."""

import sys

import contract

import geartrain


def reverse(job: geartrain.Job) -> bytes:
    return job.payload[::-1]


def empty(job: geartrain.Job) -> None:
    pass


def unique(job: geartrain.Job) -> str:
    return job.unique


def report(job: geartrain.Job) -> str:
    job.progress(1, 4)
    job.data("part")
    job.warn("careful")
    job.progress(4, 4)
    return "whole"


def fail(job: geartrain.Job) -> None:
    raise geartrain.JobFailedError("")


def die(job: geartrain.Job) -> None:
    raise geartrain.JobFailedError("it broke")


def gate(job: geartrain.Job) -> bytes:
    contract.wait_at_gate(job.payload)
    return job.payload


FUNCTIONS = (reverse, empty, unique, report, fail, die, gate)


def main() -> None:
    host, port, prefix = sys.argv[1:]
    worker = geartrain.Worker(f"gearman://{host}:{port}", name="geartrain-worker")
    for function in FUNCTIONS:
        worker.register(f"{prefix}-{function.__name__}", function)
    worker.run(ready=lambda: contract.tell("ready"))


main()
