"""Health checks for load balancers and orchestrators, and the connections of every door."""

import msgspec

import geartrain
from geartrain.doors.http import request as api
from geartrain.doors.http.problems import Refusal
from geartrain.doors.http.request import ApiRequest
from geartrain.doors.http.response import Response


class HealthStatus(msgspec.Struct, frozen=True):
    """The answer of a health check that passes."""

    status: str  # ok
    version: str


async def connections(request: ApiRequest) -> Response:
    """GET /connections."""
    return api.json((await request.context.admin.system()).doors)


def healthz(request: ApiRequest) -> Response:
    """GET /healthz: the event loop runs, since this is answered."""
    return api.json(HealthStatus("ok", geartrain.__version__))


def readyz(request: ApiRequest) -> Response:
    """GET /readyz: the server accepts jobs and can make them durable."""
    reason = request.context.options.not_ready()
    if reason:
        raise Refusal("unavailable", reason)
    return api.json(HealthStatus("ok", geartrain.__version__))
