"""What only aiogear does: unique keys of random bytes, and grabbing without them."""

import pytest

from tests.interop.libraries import AIOGEAR
from tests.interop.peer import Ask, Dial
from tests.support.gearman_peer import Kind

pytestmark = pytest.mark.peer("aiogear")


def test_unique_keys_are_any_bytes(ask: Ask, dial: Dial, function: str) -> None:
    handles = {ask(AIOGEAR, "background", function, b"same").handle() for _ in range(8)}
    worker = dial().register(function.encode())
    jobs = [worker.grab(Kind.GRAB_JOB_UNIQ) for _ in range(8)]
    assert {job.handle.decode() for job in jobs} == handles
    assert {len(job.unique) for job in jobs} == {16}
    assert any(max(job.unique) > 127 for job in jobs)  # by chance alone, all of 8 are ASCII once in 2**128
