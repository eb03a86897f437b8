"""Pages of lists that several servers have."""

import itertools
from typing import NamedTuple

import pytest

from geartrain.admin import cluster_pages
from geartrain.admin.cluster_pages import PagePart
from geartrain.errors import AdminError


class Item(NamedTuple):
    """A job or a worker."""

    id: int
    at: float


LISTS = {
    "1": [Item(9, 90.0), Item(7, 50.0), Item(3, 20.0)],
    "2": [Item(108, 80.0), Item(104, 70.0), Item(103, 60.0), Item(101, 10.0)],
    "r1": [Item(8, 85.0)],
}


def parts(places: cluster_pages.Places | None, limit: int, hidden: frozenset[int] = frozenset()) -> list[PagePart]:
    """What servers answer that have these lists, some of whose items the caller may not see."""
    answers = []
    for name, items in LISTS.items():
        place = 0 if places is None else places.get(name)
        if place is not None:
            left = [item for item in items if not place or item.id < place]
            after = str(left[:limit][-1].id) if len(left) > limit else ""
            answers.append(PagePart(name, place, [item for item in left[:limit] if item.id not in hidden], after))
    return answers


def walk(limit: int, hidden: frozenset[int] = frozenset()) -> list[int]:
    """The ids on all pages, one after the other."""
    seen: list[int] = []
    after = ""
    for _ in range(50):
        places = cluster_pages.read_places(after)
        items, next_places = cluster_pages.merge_lists(parts(places, limit, hidden), lambda item: -item.at, limit)
        assert len(items) <= limit
        seen += [item.id for item in items]
        after = cluster_pages.write_places(next_places)
        if not after:
            return seen
    raise AssertionError("the pages have no end")


EXPECTED = [item.id for item in sorted(itertools.chain(*LISTS.values()), key=lambda item: -item.at)]


@pytest.mark.parametrize("limit", [1, 2, 3, 8, 100])
def test_pages_have_every_item_once_and_in_order(limit: int) -> None:
    assert walk(limit) == EXPECTED


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_hidden_items_hide_no_others(limit: int) -> None:
    hidden = frozenset({108, 104, 8})
    assert walk(limit, hidden) == [id for id in EXPECTED if id not in hidden]


@pytest.mark.parametrize("after", ["c", "cx", "17", "c1_x", "c1_2.", "c1_-2"])
def test_what_is_no_place_is_refused(after: str) -> None:
    with pytest.raises(AdminError, match="after must be"):
        cluster_pages.read_places(after)
