"""An order as a JSON object: what the HTTP API and the control function call its fields."""

from typing import Any

from geartrain import jsonbytes
from geartrain.client.order import Order


def fields(order: Order) -> dict[str, Any]:
    """The fields of an order; those that have their default are left out, since older servers may not know them."""
    values: dict[str, Any] = {
        "function": jsonbytes.encode(order.function),
        "payload": jsonbytes.encode(order.payload),
    }
    if order.unique:
        values["unique"] = jsonbytes.encode(order.unique)
    if order.run_at:
        values["run_at"] = order.run_at
    if order.expires_at:
        values["expires_at"] = order.expires_at
    if order.keep_for:
        values["keep_for"] = order.keep_for
    if order.partition:
        values["partition"] = jsonbytes.encode(order.partition)
    if order.after:
        values["after"] = [jsonbytes.encode(handle) for handle in order.after]
        values["on_failure"] = on_failure(order)
    return {**values, "priority": order.priority.name.lower(), "timeout": order.timeout}


def on_failure(order: Order) -> str:
    """What becomes of the job if one that it waits for fails."""
    return "run" if order.runs_anyway else "cancel"
