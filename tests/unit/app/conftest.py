"""An app whose servers are never reached."""

import pytest

from geartrain.app import App


@pytest.fixture
def app() -> App:
    return App("shop", "gearman://127.0.0.1:1")
