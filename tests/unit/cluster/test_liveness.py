"""Who is taken for dead by an observer that looks late, or not at all for a while."""

from geartrain.cluster.liveness import Liveness
from geartrain.store.shared import SERVING, Node

LEASE = 2.0
OTHER = Node(7, "other", "", "", "1", 1, SERVING, False, False, 0, 41, 0.0, 0.0)


def overdue_at(looks: list[float]) -> list[float]:
    """At which of these looks a server that never commits is overdue."""
    liveness = Liveness(LEASE)
    return [now for now in looks if liveness.overdue([OTHER], now)]


def test_looks_that_are_all_late_count_in_part() -> None:
    assert overdue_at([100.0, 100.7, 101.4, 102.1, 102.8]) == [102.8]


def test_a_gap_counts_as_a_quarter_of_the_lease_at_most() -> None:
    assert overdue_at([100.0, 102.0, 102.5, 103.0, 103.25, 103.5]) == [103.5]


def test_observation_begins_anew_after_a_lease_without_a_look() -> None:
    assert overdue_at([100.0, 100.5, 101.0, 101.5, 103.6, 104.0, 104.5, 105.0, 105.5, 105.6]) == [105.6]


def test_a_server_that_has_committed_meanwhile_is_not_overdue() -> None:
    liveness = Liveness(LEASE)
    for now in (100.0, 100.7, 101.4, 102.1):
        assert not liveness.overdue([OTHER], now)
    assert not liveness.overdue([OTHER._replace(batch=42)], 102.8)
    assert liveness.still_for(OTHER) == 0.0


def test_nobody_is_overdue_while_nobody_could_commit() -> None:
    liveness = Liveness(LEASE)
    for look in range(101):
        now = 100.0 + look / 10
        liveness.excuse(now)
        assert not liveness.overdue([OTHER], now)
    assert [now for now in (110.5, 110.9, 111.0, 111.1) if liveness.overdue([OTHER], now)] == [111.0, 111.1]
