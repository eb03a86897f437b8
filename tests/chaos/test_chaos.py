"""Three servers on one PostgreSQL under load, and one fault after the other: no acknowledged job is lost or doubled."""

import contextlib
import itertools
import random

import pytest

from tests.chaos import faults
from tests.chaos.check import Books
from tests.chaos.load import under_load
from tests.chaos.members import Fleet, Member
from tests.support import postgres
from tests.support.postgres_programs import NEWEST, PEERS
from tests.support.postgres_proxy import CuttingProxy

pytestmark = pytest.mark.peer(PEERS[NEWEST])

SERVERS = 3
EARLIEST, LATEST = 0.05, 0.5  # seconds of load before a fault


def test_no_fault_loses_or_doubles_a_job(rounds: int, only: list[str], seed: int) -> None:
    chance = random.Random(seed)
    names = faults.chosen(only)
    with postgres.running() as cluster, contextlib.ExitStack() as stack:
        proxies = [stack.enter_context(CuttingProxy(cluster.port)) for _ in range(SERVERS)]
        members = [Member(f"server-{number}", proxy.url(), proxy) for number, proxy in enumerate(proxies)]
        with Fleet(members) as fleet:
            books = Books(fleet)
            stage = faults.Stage(fleet, cluster, chance)
            for number, name in enumerate(itertools.islice(faults.deck(names, chance), rounds or len(names))):
                with under_load(fleet, books.account, books.keys, chance.randrange(2**32), str(number)):
                    faults.pass_time(chance.uniform(EARLIEST, LATEST))
                    faults.FAULTS[name](stage)
                    faults.pass_time(chance.uniform(EARLIEST, LATEST))
                books.check(f"round {number}, {name}")
                books.drain()
                print(f"round {number}, {name}: {books.summary()}")
