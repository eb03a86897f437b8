"""One server with every door, and a place for what was observed."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crossing.parties import SETTINGS, House
from tests.crossing.scenarios import Outcome
from tests.support import serving

Observations = dict[str, dict[str, Outcome]]

# Name a file here to have the observations of a run written to it; tools/crossing_doc.py makes the page of them.
REPORT = "GEARTRAIN_CROSSING_REPORT"


@pytest.fixture(scope="session")
def house() -> Iterator[House]:
    with serving.serve("--store", "memory", *SETTINGS) as server:
        house = House(server)
        try:
            yield house
        finally:
            house.close()


@pytest.fixture(scope="session")
def observations() -> Iterator[Observations]:
    observed: Observations = {}
    yield observed
    report = os.environ.get(REPORT)
    if report:
        Path(report).write_text(json.dumps(observed, indent=1, sort_keys=True) + "\n")
