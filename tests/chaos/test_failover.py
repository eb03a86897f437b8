"""The database behind two servers changes under load: another primary, or a pooler that restarts."""

import random

import pytest

from tests.chaos import faults, rounds
from tests.chaos.members import Fleet, Member
from tests.support import pgbouncer, postgres
from tests.support.pgbouncer import PgBouncer
from tests.support.postgres_pair import Pair
from tests.support.postgres_programs import NEWEST, PEERS

pytestmark = pytest.mark.peer(PEERS[NEWEST])


def two_servers(url: str) -> Fleet:
    return Fleet([Member("server-0", url), Member("server-1", url)])


def test_a_synchronous_standby_takes_over(chaos_rounds: int, seed: int) -> None:
    with Pair() as pair, two_servers(pair.url) as fleet:
        stage = faults.Stage(fleet, random.Random(seed), pair=pair)
        rounds.run(stage, {"failover": faults.fail_over}, chaos_rounds)


def test_servers_write_again_what_an_asynchronous_standby_has_not_heard_of(chaos_rounds: int, seed: int) -> None:
    with Pair(synchronous=False) as pair, two_servers(pair.url) as fleet:
        stage = faults.Stage(fleet, random.Random(seed), pair=pair)
        behind = {
            "failover with loss": faults.fail_over_behind,
            "failover with loss, then no commits": faults.fail_over_behind_and_hold,
        }
        rounds.run(stage, behind, chaos_rounds, then=faults.kill_all_servers, loses_keys=True)


@pytest.mark.peer(pgbouncer.PEER)
def test_a_pooler_restarts(chaos_rounds: int, seed: int) -> None:
    with postgres.running() as cluster, PgBouncer(cluster.port) as pooler, two_servers(pooler.url()) as fleet:
        stage = faults.Stage(fleet, random.Random(seed), cluster, pooler=pooler)
        rounds.run(stage, {"restart of PgBouncer": faults.restart_pooler}, chaos_rounds)
