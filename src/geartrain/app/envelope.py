"""What a task's payload holds: the call, and the little that has to travel with it.

    {"v": 1, "id": "5f2c9a1e7b3d-1", "args": [3, "Ada"], "kwargs": {"urgent": true}}

Only `v` and `args` are needed, so that a program in any language can call a task. A payload that is no envelope is
a job from somebody who knows nothing of tasks; `arguments.py` says what becomes of it.
"""

import itertools
import os
from typing import Any, Final

import msgspec

from geartrain.app.codecs import JSON, Codec
from geartrain.errors import ArgumentsError, CodecError

VERSION: Final = 1


class Envelope(msgspec.Struct, omit_defaults=True):
    """A call."""

    v: int  # of this format
    args: list[Any]
    kwargs: dict[str, Any] = {}
    id: str = ""  # names the call in logs, the same over all its attempts
    wait: bool = False  # somebody waits for the result at this moment
    tried: int = 0  # attempts before this one, where the server does not count them
    meta: dict[str, Any] = {}  # what middleware sends along


class Reader:
    """Takes payloads apart, in a task's own codec or in JSON, which is always understood."""

    def __init__(self, codec: Codec) -> None:
        languages = [codec] if codec is JSON else [codec, JSON]
        self._decoders = [(each, each.decoder(Envelope)) for each in languages]

    def read(self, payload: bytes) -> tuple[Envelope, Codec] | None:
        """The call and the codec that it is written in; None: this is no envelope."""
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
        if envelope.v != VERSION:
            raise ArgumentsError(f"its payload is of version {envelope.v}, this worker understands version {VERSION}")
        return envelope


class _Names:
    """Ids of calls: unlike any other process's, and cheap."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self._prefix = os.urandom(6).hex()
        self._numbers = itertools.count(1)

    def next(self) -> str:
        return f"{self._prefix}-{next(self._numbers)}"


_names: Final = _Names()
os.register_at_fork(after_in_child=_names.renew)


def new_id() -> str:
    """An id that no other call has."""
    return _names.next()
