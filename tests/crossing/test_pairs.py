"""Submitted by one protocol, run by another: every pair, in every scenario."""

import asyncio
import os

import pytest

from tests.crossing import expectations
from tests.crossing.conftest import REPORT, Observations
from tests.crossing.parties import PROTOCOLS, House
from tests.crossing.scenarios import SCENARIOS, Pair, Scenario


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
@pytest.mark.parametrize("worker", PROTOCOLS)
@pytest.mark.parametrize("client", PROTOCOLS)
def test_pair(house: House, observations: Observations, client: str, worker: str, scenario: Scenario) -> None:
    """What is observed is what both sides' capabilities promise, and what the documentation says."""
    pair = Pair(house, client, worker)
    observed = asyncio.run(scenario(pair))
    observations.setdefault(client, {}).setdefault(worker, {}).update(observed)
    expected = expectations.expected(pair)
    assert observed == {aspect: expected[aspect] for aspect in observed}
    if os.environ.get(REPORT):
        return  # the documentation is about to be renewed
    documented = expectations.committed(client, worker)
    assert observed == {aspect: documented.get(aspect) for aspect in observed}, (
        "docs/protocols/crossing.json says otherwise; tools/crossing_doc.py tells how to renew it"
    )


@pytest.mark.skipif(bool(os.environ.get(REPORT)), reason="the documentation is about to be renewed")
def test_every_aspect_of_every_pair_is_documented(house: House) -> None:
    for client in PROTOCOLS:
        for worker in PROTOCOLS:
            aspects = expectations.expected(Pair(house, client, worker))
            assert expectations.committed(client, worker).keys() == aspects.keys()
