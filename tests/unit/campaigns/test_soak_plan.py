"""A seed decides the faults of a soak."""

import itertools

from campaigns.soak import plan
from campaigns.soak.plan import Fault, FaultKind


def first(seed: int, count: int) -> list[Fault]:
    return list(itertools.islice(plan.faults(seed), count))


def test_seed_repeats_a_plan() -> None:
    assert first(1, 50) == first(1, 50) != first(2, 50)


def test_every_kind_occurs_before_any_occurs_again() -> None:
    kinds = [fault.kind for fault in first(3, 3 * len(FaultKind))]
    for part in range(3):
        assert set(kinds[part * len(FaultKind) : (part + 1) * len(FaultKind)]) == set(FaultKind)


def test_last_part_is_ahead_of_every_clock_step() -> None:
    assert max(plan.CLOCK_OFFSETS) < plan.LAST_CLOCK_OFFSET
