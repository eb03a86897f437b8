"""A stand-in for asyncio's loop, for tests in which nothing runs in the background."""

from collections.abc import Callable


class Handle:
    """A timer that never comes."""

    def cancel(self) -> None:
        pass


class EagerLoop:
    """Runs at once what is to be called soon, so that every tick ends where it begins. Time stands still."""

    def time(self) -> float:
        return 0.0

    def call_soon(self, callback: Callable[[], object]) -> None:
        callback()

    def call_later(self, delay: float, callback: Callable[[], object]) -> Handle:
        return Handle()

    def call_at(self, when: float, callback: Callable[[], object]) -> Handle:
        return Handle()
