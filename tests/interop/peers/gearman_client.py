"""A client that is the `gearman` command."""

import subprocess
import sys

import contract

FLAGS = {"high": ["-I"], "normal": [], "low": ["-L"]}
SECONDS = 60


def call(order: contract.Order, *flags: str) -> subprocess.CompletedProcess[bytes]:
    command = ["gearman", "-h", order.host, "-p", str(order.port), "-f", order.function, *FLAGS[order.priority]]
    unique = ["-u", order.unique] if order.unique else []
    return subprocess.run([*command, *unique, *flags], input=order.payload, capture_output=True, timeout=SECONDS)


def run(order: contract.Order) -> None:
    ran = call(order)
    if b"Job failed" in ran.stderr:
        contract.tell("fail")
    else:
        contract.tell("complete", ran.stdout)


def background(order: contract.Order) -> None:
    ran = call(order, "-b", "-v")
    contract.tell("created", ran.stdout.removeprefix(b"Task created: ").rstrip())


def batch(order: contract.Order) -> None:
    """Each line is sent with its line end, so a result that is the line reversed starts with that."""
    for result in call(order, "-n").stdout.split(b"\n")[1:]:
        contract.tell("complete", result)


order = contract.order()
{"run": run, "background": background, "batch": batch}[order.verb](order)
sys.stdout.flush()
