"""The live server keeps to its own description: requests made from it at random never break it or surprise it."""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import checks
from schemathesis.specs.openapi import checks as openapi_checks

from geartrain.web import openapi, table
from geartrain.web.route import Stream
from tests.acceptance.http.peer import Peer

EXAMPLES = 8  # for each route; the point is the odd value, and every route gets some
ENDLESS = [route.path for route in table.ROUTES if route.answer is Stream]

SCHEMA = schemathesis.openapi.from_dict(openapi.document(table.ROUTES)).exclude(path=ENDLESS)
CHECKS = [
    checks.not_a_server_error,
    openapi_checks.status_code_conformance,
    openapi_checks.content_type_conformance,
    openapi_checks.response_schema_conformance,
]


def test_the_description_that_is_served_is_the_one_that_is_tested(peer: Peer) -> None:
    assert peer.get("/openapi.json") == openapi.document(table.ROUTES)


@SCHEMA.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    database=None,
)
def test_every_route_keeps_to_its_description(peer: Peer, case: schemathesis.Case) -> None:
    if isinstance(case.body, dict):
        case.body.pop("wait", None)  # nobody would answer
    if case.query and "wait" in case.query:
        case.query["wait"] = 0
    response = case.call(base_url=f"http://{peer.host}:{peer.port}", timeout=20)
    case.validate_response(response, checks=CHECKS)


def test_afterwards_it_is_well(peer: Peer, server: "object") -> None:
    assert peer.ask("GET", "/readyz").status == 200
    assert "Traceback" not in server.stderr  # type: ignore[attr-defined]
