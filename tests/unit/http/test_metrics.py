"""Prometheus' format, read back by Prometheus' own library."""

import math

from prometheus_client.parser import text_string_to_metric_families

from geartrain.doors.http import metrics
from geartrain.doors.http.metrics import MetricFamily


def test_labels_round_trip() -> None:
    family = MetricFamily("jobs", "gauge", "Jobs.")
    names = [b"plain", b'say "hi"', b"back\\slash", b"line\nend", "café".encode(), b"{x=1},", b"nul\0"]
    for number, name in enumerate(names):
        family.add(number, f'function="{metrics.label(name)}"')
    [read] = text_string_to_metric_families(family.text())
    assert [sample.labels["function"] for sample in read.samples] == [
        "plain", 'say "hi"', "back\\slash", "line\nend", "café", "{x=1},", "nul\\x00",
    ]  # fmt: skip
    assert [sample.value for sample in read.samples] == list(range(len(names)))


def test_labels_of_bytes_that_are_not_utf8() -> None:
    assert metrics.label(b"\xff") == r"\\xff"


def test_a_histogram_adds_up() -> None:
    family = MetricFamily("wait_seconds", "histogram", "Waiting.")
    family.add_histogram((0.001, 0.5), (3, 2, 1), 1.25)
    [read] = text_string_to_metric_families(family.text())
    assert read.type == "histogram"
    found = {(sample.name, sample.labels.get("le", "")): sample.value for sample in read.samples}
    assert found == {
        ("wait_seconds_bucket", "0.001"): 3.0,
        ("wait_seconds_bucket", "0.5"): 5.0,
        ("wait_seconds_bucket", "+Inf"): 6.0,
        ("wait_seconds_sum", ""): 1.25,
        ("wait_seconds_count", ""): 6.0,
    }


def test_numbers() -> None:
    assert metrics.number(0) == "0"
    assert metrics.number(1e15) == "1000000000000000"
    assert float(metrics.number(math.pi)) == math.pi
    assert metrics.number(True) == "1"
