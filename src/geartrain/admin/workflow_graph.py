"""The picture of a workflow, which is the payload of the job that stands for it.

Members that follow each other and are alike, with the same function and the same parents, are one *group*: a callback
after 100,000 jobs is a picture of two. Parents are ranges of places, `[[0, 99999]]`, from the first to the last.

>>> graph = draw("import", [MemberJob(b"fetch"), MemberJob(b"fetch"), MemberJob(b"merge", b"", (0, 1))])
>>> encode(graph)
b'{"name":"import","count":3,"groups":[{"function":"fetch","count":2},{"function":"merge","count":1,"after":[[0,1]]}]}'
>>> beginning(encode(graph)[:30])
('import', 3)
"""

import json
import re
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from geartrain import jsonbytes
from geartrain.engine.workflow_verbs import MemberJob
from geartrain.jsonbytes import JsonBytes
from geartrain.number_ranges import Ranges, ranges_of

OnFailure = Literal["cancel", "run"]

_COUNT: Final = re.compile(r',"count":(\d+)')
_NAME_AT: Final = len('{"name":')


class Group(msgspec.Struct, frozen=True, omit_defaults=True):
    """Members that are alike, in the order of their places."""

    function: JsonBytes
    count: int
    after: Ranges = []
    on_failure: OnFailure = "cancel"


class Graph(msgspec.Struct, frozen=True):
    """A workflow; its name and the number of its members come first, so that the beginning of the text has them."""

    name: str
    count: int
    groups: list[Group]


_encode: Final = msgspec.json.Encoder().encode
_decoder: Final = msgspec.json.Decoder(Graph)
encode = _encode


def decode(text: bytes) -> Graph | None:
    """None: it is no picture of a workflow, or only a part of one."""
    try:
        return _decoder.decode(text)
    except msgspec.MsgspecError:
        return None


def beginning(text: bytes) -> tuple[str, int]:
    """The name of a workflow and the number of its members, from the beginning of its picture; empty if it has none."""
    try:
        decoded = text.decode("utf-8", "ignore")
        name, end = json.JSONDecoder().raw_decode(decoded, _NAME_AT)
    except ValueError:
        return "", 0
    count = _COUNT.match(decoded, end)
    return str(name), int(count[1]) if count is not None else 0


def draw(name: str, nodes: Sequence[MemberJob]) -> Graph:
    """The picture of a workflow that is about to be submitted."""
    groups: list[Group] = []
    first = 0
    for place in range(1, len(nodes) + 1):
        if place < len(nodes) and _alike(nodes[first], nodes[place]):
            continue
        node = nodes[first]
        on_failure: OnFailure = "run" if node.runs_anyway else "cancel"
        groups.append(Group(jsonbytes.encode(node.function), place - first, ranges_of(node.after), on_failure))
        first = place
    return Graph(name, len(nodes), groups)


def _alike(one: MemberJob, other: MemberJob) -> bool:
    return (one.function, one.after, one.runs_anyway) == (other.function, other.after, other.runs_anyway)
