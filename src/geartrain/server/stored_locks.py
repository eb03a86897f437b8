"""Locks of Periodic's jobs in a store that several servers share: its calls are made in threads."""

import asyncio
from collections.abc import Sequence

from geartrain.model import LockChange, LockUse
from geartrain.store.shared import SharedStore


class StoredLocks:
    """Implements `LockStore` of the Periodic door."""

    def __init__(self, store: SharedStore) -> None:
        self._store = store

    async def change(self, changes: Sequence[LockChange]) -> list[bool]:
        return await asyncio.get_running_loop().run_in_executor(None, self._store.change_locks, changes)

    async def uses(self, names: Sequence[bytes]) -> dict[bytes, LockUse]:
        return await asyncio.get_running_loop().run_in_executor(None, self._store.lock_uses, names)
