"""What only the `gear` library does."""

import pytest

from tests.interop.libraries import GEAR
from tests.interop.peer import Ask, Hire

pytestmark = pytest.mark.peer("gear")


def test_a_unique_that_is_too_long_costs_one_job_of_three(ask: Ask, hire: Hire, function: str) -> None:
    """The client does not connect again, so a server that closes the connection stops the other jobs too."""
    hire(GEAR, function)
    heard = ask(GEAR, "one_bad_unique", f"{function}-reverse", b"word").heard()
    assert sorted(heard) == ["complete drow", "complete drow", "refused"]
