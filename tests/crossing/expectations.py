"""What to expect of each pair, from what each side can say; and the observations that the documentation is made of."""

import json
from pathlib import Path

from tests.crossing.parties import PROTOCOLS
from tests.crossing.scenarios import OUTLIVED, Outcome, Pair

COMMITTED = Path(__file__).parents[2] / "docs" / "protocols" / "crossing.json"

# Beyond the library's capabilities: whose failures have words, and a code.
WORDS = frozenset(PROTOCOLS) - {"periodic", "memodb"}
CODE = frozenset({"danga", "http"})
# Whose clients hear warnings, and whose workers can send them.
HEARS_WARNINGS = frozenset({"gearman"})
SENDS_WARNINGS = frozenset({"gearman", "http"})
# Whose failures of a job that does not depend on its client are tried again by the server.
RETRIED = frozenset({"periodic"})
# Whose clients can say what their protocol has no field for: by the control function, or because it is ours.
CONTROLS = frozenset({"gearman", "http"})
# Who replaces a job by another one of the same key, and which workers are told the key.
REPLACES = frozenset({"periodic"})
KEY = frozenset({"gearman", "periodic", "http"})


def expected(pair: Pair) -> Outcome:
    """Every aspect of a pair."""
    client, worker = pair.client_can, pair.worker_can
    return {
        "result": "unchanged",
        "large": "unchanged",
        "failure": _failure(pair),
        "progress": _heard(client.progress and worker.progress),
        "data": _heard(client.data and worker.data),
        "warning": _heard(pair.client in HEARS_WARNINGS and pair.worker in SENDS_WARNINGS),
        "unique": ("replaced" if pair.client in REPLACES else "shared") if client.unique else "cannot be said",
        "key": ("seen" if pair.worker in KEY else "not seen") if client.unique else "cannot be said",
        "priority": "kept" if client.priority else "cannot be said",
        "partition": "take turns" if pair.client in CONTROLS else "cannot be said",
        "after": "waits" if pair.client in CONTROLS else "cannot be said",
        "background": ("run, and its result kept" if client.result_later else "run")
        if client.background
        else "cannot be said",
        "worker lost": "run by another",
        "client lost": "run all the same" if pair.client in OUTLIVED else "dropped unless it runs",
    }


def _failure(pair: Pair) -> str:
    if not pair.client_can.failure:
        return "never heard"
    if not pair.worker_can.failure or (pair.worker in RETRIED and pair.client in OUTLIVED):
        return "heard when it is given up"
    both = {pair.client, pair.worker}
    if not both <= WORDS:
        return "heard"
    return "heard with words and code" if both <= CODE else "heard with words"


def _heard(both: bool) -> str:
    return "heard" if both else "not heard"


def committed(client: str, worker: str) -> Outcome:
    """What the documentation says of a pair."""
    pairs: dict[str, dict[str, Outcome]] = json.loads(COMMITTED.read_text())
    return pairs[client][worker]
