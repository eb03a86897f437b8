"""The server conforms to its OpenAPI document: random requests made from it cause no errors and no surprises."""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import checks
from schemathesis.specs.openapi import checks as openapi_checks

from geartrain.doors.http import openapi, routes
from geartrain.doors.http.route import ServerSentEvents
from tests.support import serving
from tests.support.http_peer import Peer

EXAMPLES = 8  # for each route; the point is the odd value, and every route gets some
ENDLESS = [route.path for route in routes.ROUTES if route.answer is ServerSentEvents]
CHECKS = [
    checks.not_a_server_error,
    openapi_checks.status_code_conformance,
    openapi_checks.content_type_conformance,
    openapi_checks.response_schema_conformance,
]
BOUNDED = settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    database=None,
)

SCHEMA = schemathesis.openapi.from_dict(openapi.document(routes.ROUTES)).exclude(path=ENDLESS)
OPERATIONS = [found.ok() for found in SCHEMA.get_all_operations()]


def test_the_served_document_is_the_tested_one(peer: Peer) -> None:
    assert peer.get("/openapi.json") == openapi.document(routes.ROUTES)


def test_every_route_but_the_streams_is_tested() -> None:
    assert len(OPERATIONS) == sum(route.answer is not ServerSentEvents for route in routes.ROUTES)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_every_route_conforms_to_its_description(peer: Peer, operation: Any) -> None:
    @BOUNDED
    @given(case=operation.as_strategy())
    def check(case: schemathesis.Case) -> None:
        if isinstance(case.body, dict):
            case.body.pop("wait", None)  # nobody would answer
        if case.query and "wait" in case.query:
            case.query["wait"] = 0
        response = case.call(base_url=f"http://{peer.host}:{peer.port}", timeout=20)
        case.validate_response(response, checks=CHECKS)

    check()


def test_the_server_is_healthy_afterwards(peer: Peer, server: serving.ServerProcess) -> None:
    assert peer.ask("GET", "/readyz").status == 200
    assert "Traceback" not in server.stderr
