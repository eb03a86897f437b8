"""Three servers on one PostgreSQL under load, and one fault after the other: no acknowledged job is lost or doubled."""

import contextlib
import random

import pytest

from tests.chaos import faults, rounds
from tests.chaos.members import Fleet, Member
from tests.support import postgres
from tests.support.link_relay import LinkRelays
from tests.support.postgres_programs import NEWEST, PEERS
from tests.support.postgres_proxy import CuttingProxy

pytestmark = pytest.mark.peer(PEERS[NEWEST])

NAMES = ("server-0", "server-1", "server-2")
SHORT = 17  # rounds of a run without options: each fault once, and some again; the seed decides which


def test_servers_and_postgresql_fail_in_every_way(chaos_rounds: int, only: list[str], seed: int) -> None:
    with postgres.running() as cluster, contextlib.ExitStack() as stack:
        relays = stack.enter_context(LinkRelays(NAMES))
        proxies = {name: stack.enter_context(CuttingProxy(cluster.port)) for name in NAMES}
        fleet = Fleet([Member(name, proxy.url(), proxy, relays[name]) for name, proxy in proxies.items()])
        stage = faults.Stage(stack.enter_context(fleet), random.Random(seed), cluster, relays=relays)
        chosen = faults.chosen(only)
        rounds.run(stage, chosen, chaos_rounds or (len(chosen) if only else SHORT))
