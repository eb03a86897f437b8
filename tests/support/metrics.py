"""A server's metrics, parsed by Prometheus' own library, and the page that lists them."""

import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tests.support.http_peer import Peer

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
SUFFIXES = re.compile(r"_(bucket|sum|count)$")


def scrape(peer: Peer) -> dict[str, list[Sample]]:
    """Samples by name."""
    answer = peer.ask("GET", "/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found: dict[str, list[Sample]] = {}
    for family in text_string_to_metric_families(answer.data.decode()):
        assert family.documentation
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample)
    keys = [(s.name, tuple(sorted(s.labels.items()))) for samples in found.values() for s in samples]
    assert len(keys) == len(set(keys)), "a series comes twice"
    return found


def value(found: dict[str, list[Sample]], name: str, **labels: str) -> float:
    [sample] = [sample for sample in found[name] if labels.items() <= sample.labels.items()]
    return float(sample.value)


def documented(section: str = "") -> list[str]:
    """The metrics in the tables of the page, or of one section of it."""
    text = PAGE.read_text()
    if section:
        text = text.partition(f"## {section}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `([a-z_]+)`", text, re.MULTILINE)
