"""A client with the `python3-gearman` library, which knows text only."""

import contract
import python3_gearman
from python3_gearman import constants, job

PRIORITY = {
    "high": constants.PRIORITY_HIGH,
    "normal": constants.PRIORITY_NONE,
    "low": constants.PRIORITY_LOW,
}


def run(client: python3_gearman.GearmanClient, order: contract.Order) -> None:
    request = client.submit_job(
        order.function,
        order.payload.decode(),
        unique=order.unique or None,
        priority=PRIORITY[order.priority],
        poll_timeout=60,
    )
    _tell_request(request)


def background(client: python3_gearman.GearmanClient, order: contract.Order) -> None:
    request = client.submit_job(
        order.function,
        order.payload.decode(),
        unique=order.unique or None,
        priority=PRIORITY[order.priority],
        background=True,
        wait_until_complete=False,
    )
    contract.tell("created", request.job.handle)


def batch(client: python3_gearman.GearmanClient, order: contract.Order) -> None:
    jobs = [{"task": order.function, "data": line} for line in order.payload.decode().splitlines()]
    for request in client.submit_multiple_jobs(jobs, poll_timeout=60):
        _tell_request(request)


def status(client: python3_gearman.GearmanClient, order: contract.Order) -> None:
    [connection] = client.connection_list
    client.establish_connection(connection)
    asked = job.GearmanJobRequest(job.GearmanJob(connection, order.function, "", "", ""))
    asked.state = constants.JOB_CREATED  # the library does not wait for the answer otherwise
    known = client.get_job_status(asked, poll_timeout=60).status
    contract.tell_status(known["known"], known["running"], known["numerator"], known["denominator"])


def _tell_request(request: job.GearmanJobRequest) -> None:
    """The library keeps what it heard in one list per kind of packet, and only the last status."""
    if request.status:
        contract.tell("status", f"{request.status['numerator']}/{request.status['denominator']}")
    for data in request.data_updates:
        contract.tell("data", data)
    for warning in request.warning_updates:
        contract.tell("warning", warning)
    if request.state == constants.JOB_COMPLETE:
        contract.tell("complete", request.result)
    else:
        contract.tell("fail" if request.state == constants.JOB_FAILED else f"stuck in {request.state}")


def main() -> None:
    order = contract.order()
    client = python3_gearman.GearmanClient([f"{order.host}:{order.port}"])
    {"run": run, "background": background, "batch": batch, "status": status}[order.verb](client, order)


main()
