"""Which reasons are equal to an operator."""

import pytest

from geartrain.failure_reasons import LONGEST, reason_group, summary

TRACEBACK = """Traceback (most recent call last):
  File "/srv/tasks.py", line {line}, in charge
    gateway.charge(order)
ConnectionError: cannot reach 10.0.{line}.7:443
"""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("gave up after 3 attempts", "gave up after 10 attempts"),
        ("took 1.5 s", "took 1,200.25 s"),
        ("KeyError: 'order-17'", "KeyError: 'order of \"Ada\"'"),
        ('no file "a.csv"', 'no file "b b.csv"'),
        ("<Job at 0x7f00deadbeef>", "<Job at 0x10>"),
        ("call 5f2c9a1e7b3d failed", "call 0123456789abcdef failed"),
        ("no user 550e8400-e29b-41d4-a716-446655440000", "no user 00000000-0000-0000-0000-000000000000"),
        ("no answer from 10.0.0.1:443", "no answer from 192.168.100.200:8080"),
        ("no answer from 10.0.0.1", "no answer from fe80::1"),
        ("refused by [::1]:4730", "refused by [2001:db8::7]:25"),
        ("mailbox ada@example.org is full", "mailbox g.h+x@mail.example.com is full"),
        (TRACEBACK.format(line=12), TRACEBACK.format(line=7)),
        (TRACEBACK.format(line=12), "ConnectionError: cannot reach 10.0.0.1:80"),
    ],
)
def test_reasons_that_differ_in_variable_parts_are_equal(one: str, other: str) -> None:
    assert one != other
    assert reason_group(one) == reason_group(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("KeyError: 'a'", "ValueError: 'a'"),
        ("can't read 'x'", "can't write 'x'"),
        ("disk full", "disk fail"),
        ("", "unknown"),
    ],
)
def test_other_reasons_differ(one: str, other: str) -> None:
    assert reason_group(one) != reason_group(other)


def test_a_group_is_one_short_line() -> None:
    assert reason_group("first\nsecond 2") == "first"
    assert len(reason_group("x" * 5000)) == LONGEST
    assert summary(TRACEBACK.format(line=3)) == "ConnectionError: cannot reach 10.0.3.7:443"
