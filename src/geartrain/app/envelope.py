"""The envelope: the payload of a task's job, which is a call and what is sent with it.

    {"v": 1, "id": "5f2c9a1e7b3d-1", "args": [3, "Ada"], "kwargs": {"urgent": true}}

Only `v` and `args` are required, so that a program in any language can call a task. A payload that is not an envelope
comes from a client that does not know about tasks; see `Parameters.read_single`.
"""

import itertools
import os
from typing import Any, Final

import msgspec

from geartrain.app.codecs import JSON, Codec
from geartrain.app.node_arguments import ParentResult
from geartrain.errors import ArgumentsError, CodecError

VERSION: Final = 1
WITH_RESULTS: Final = 2  # the version of an envelope with `results`, which older workers must not ignore


class Envelope(msgspec.Struct, omit_defaults=True):
    """A call as it is sent. The names of the fields are the wire format."""

    v: int  # of this format
    args: list[Any]
    kwargs: dict[str, Any] = {}
    id: str = ""  # of the call, for logs; the same for all its attempts
    wait: bool = False  # a client waits for the result
    tried: int = 0  # previous attempts, on servers that do not count them
    meta: dict[str, Any] = {}  # set by middleware
    place: int | None = None  # in its workflow, from 0; None: it belongs to none
    results: list[ParentResult] = []  # of other jobs of the workflow, which are among the arguments


class EnvelopeReader:
    """Decodes payloads with a task's codec, or as JSON, which every task accepts."""

    def __init__(self, codec: Codec) -> None:
        accepted = [codec] if codec is JSON else [codec, JSON]
        self._decoders = [(codec, codec.decoder(Envelope)) for codec in accepted]

    def read(self, payload: bytes) -> tuple[Envelope, Codec] | None:
        """The envelope and its codec; None: the payload is not an envelope."""
        for codec, decode in self._decoders:
            try:
                envelope = decode(payload)
            except CodecError:
                continue
            if isinstance(envelope, Envelope):
                return self._checked(envelope), codec
        return None

    @staticmethod
    def _checked(envelope: Envelope) -> Envelope:
        if envelope.v not in (VERSION, WITH_RESULTS):
            raise ArgumentsError(
                f"unsupported payload version {envelope.v}; this worker supports versions {VERSION} and {WITH_RESULTS}"
            )
        return envelope


class _CallIds:
    """Ids of calls: a random prefix per process and a counter."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self._prefix = os.urandom(6).hex()
        self._numbers = itertools.count(1)

    def next(self) -> str:
        return f"{self._prefix}-{next(self._numbers)}"


_call_ids: Final = _CallIds()
os.register_at_fork(after_in_child=_call_ids.renew)


def new_id() -> str:
    """A unique id for a call."""
    return _call_ids.next()
