"""A client with our own library."""

import contract

import geartrain
from geartrain.client import job_events


def tell_event(event: job_events.Event) -> None:
    match event:
        case job_events.Progressed(numerator, denominator):
            contract.tell("status", f"{numerator:g}/{denominator:g}")
        case job_events.Data(data):
            contract.tell("data", data)
        case job_events.Warned(data):
            contract.tell("warning", data)
        case job_events.Completed(result):
            contract.tell("complete", result)
        case job_events.Failed(data=data):
            contract.tell(*(("exception", data) if data else ("fail",)))


def run(client: geartrain.Client, order: contract.Order) -> None:
    job = client.submit(order.function, order.payload, unique=order.unique, priority=order.priority)
    for event in job.events():
        tell_event(event)


def background(client: geartrain.Client, order: contract.Order) -> None:
    job = client.submit(
        order.function, order.payload, unique=order.unique, priority=order.priority, background=True
    )  # fmt: skip
    contract.tell("created", job.handle)


def batch(client: geartrain.Client, order: contract.Order) -> None:
    orders = [client.order(order.function, line) for line in order.payload.splitlines()]
    for job in client.submit_many(orders):
        contract.tell("complete", job.result())


def status(client: geartrain.Client, order: contract.Order) -> None:
    known, running, numerator, denominator, *_ = client.job(order.function).status()
    contract.tell_status(known, running, f"{numerator:g}", f"{denominator:g}")


def main() -> None:
    order = contract.order()
    with geartrain.Client(f"gearman://{order.host}:{order.port}") as client:
        {"run": run, "background": background, "batch": batch, "status": status}[order.verb](client, order)


main()
