"""The verbs that dump the running server and load a dump into it.

A saved value is loaded by whoever uses it: each kind of value has a loader of its own. A value of a kind that nobody
uses here, such as the configuration of a door that does not listen, is saved as it is, so that the next dump has it.
"""

import re
from typing import Final

from geartrain.admin import verbs
from geartrain.admin.base import AdminBase, LoadValue
from geartrain.admin.job_scan import JobScanner
from geartrain.admin.views import DumpPage, LoadView
from geartrain.errors import AdminError
from geartrain.job_query import page_position

_KIND: Final = re.compile(r"(.+)\.[^.]+")


class DumpVerbs(AdminBase):
    """Dump, and load."""

    _scanner: JobScanner
    value_loaders: dict[str, LoadValue]  # by kind: the part of a name before the last dot
    _unused_values: dict[str, bytes]

    async def dump(self, part: str, dump: str = "", after: str = "") -> DumpPage:
        """A page of a dump."""
        if part not in verbs.DUMP_PARTS:
            raise AdminError("bad-request", f"unknown part {part!r}; the parts are {', '.join(verbs.DUMP_PARTS)}")
        return await self._server.dump(part, page_position(dump), page_position(after))

    async def load(self, lines: str, replace: bool = False) -> LoadView:
        """Load a dump, all or nothing of its lines."""
        try:
            return await self._server.load(lines.encode(), replace, self._load_value)
        finally:
            self._scanner.forget_restored()

    def _load_value(self, name: str, value: bytes, replace: bool) -> tuple[bool, bool]:
        kind = _KIND.fullmatch(name)
        load = self.value_loaders.get(kind[1] if kind is not None else name)
        if load is not None:
            return load(name, value, replace)
        return self._save_unused(name, value, replace)

    def _save_unused(self, name: str, value: bytes, replace: bool) -> tuple[bool, bool]:
        was_there = name in self._unused_values
        if was_there and not replace:
            return False, True
        self._unused_values[name] = value
        self._engine.journal.save_value(name, value)
        return True, was_there
