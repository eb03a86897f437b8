"""Submitted by one protocol at one server, run by another protocol at another server: every pair, in every scenario."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.acceptance.cluster.conftest import POSTGRESQL
from tests.crossing import expectations
from tests.crossing.parties import PROTOCOLS, SETTINGS, House
from tests.crossing.scenarios import SCENARIOS, Pair, Scenario
from tests.support import postgres, postgres_programs, serving
from tests.support.postgres_fixtures import Clusters

pytestmark = POSTGRESQL


@pytest.fixture(scope="module")
def house(clusters: Clusters) -> Iterator[House]:
    """Two servers: clients are connected to the first one, workers to the second one."""
    shared = clusters(postgres_programs.NEWEST)
    with postgres.fresh_schema(shared) as schema:
        own = ("--store", shared.url(schema=schema), "--lease", "60s", *SETTINGS)
        with (
            serving.serve(*own, "--node-name", "clients") as clients,
            serving.serve(*own, "--node-name", "workers") as workers,
        ):
            house = House(clients, workers)
            try:
                yield house
            finally:
                house.close()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
@pytest.mark.parametrize("worker", PROTOCOLS)
@pytest.mark.parametrize("client", PROTOCOLS)
def test_pair(house: House, client: str, worker: str, scenario: Scenario) -> None:
    """What is observed is what is observed where both are connected to one server."""
    pair = Pair(house, client, worker)
    observed = asyncio.run(scenario(pair))
    expected = expectations.expected(pair)
    assert observed == {aspect: expected[aspect] for aspect in observed}
