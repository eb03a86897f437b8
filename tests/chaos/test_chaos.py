"""Three servers on one PostgreSQL under load, and one fault after the other: no acknowledged job is lost or doubled."""

import contextlib
import random

import pytest

from tests.chaos import faults, rounds
from tests.chaos.members import Fleet, Member
from tests.support import postgres
from tests.support.postgres_programs import NEWEST, PEERS
from tests.support.postgres_proxy import CuttingProxy

pytestmark = pytest.mark.peer(PEERS[NEWEST])

SERVERS = 3


def test_servers_and_postgresql_fail_in_every_way(chaos_rounds: int, only: list[str], seed: int) -> None:
    with postgres.running() as cluster, contextlib.ExitStack() as stack:
        proxies = [stack.enter_context(CuttingProxy(cluster.port)) for _ in range(SERVERS)]
        members = [Member(f"server-{number}", proxy.url(), proxy) for number, proxy in enumerate(proxies)]
        with Fleet(members) as fleet:
            rounds.run(faults.Stage(fleet, random.Random(seed), cluster), faults.chosen(only), chaos_rounds)
