"""A loop whose clock is moved by hand."""

import asyncio


class FakeLoop(asyncio.SelectorEventLoop):
    """Time stands still until `pass_time`."""

    now = 1000.0

    def time(self) -> float:
        return self.now

    def pass_time(self, seconds: float) -> None:
        """Move the clock, and let the loop call what is due and write what was said."""
        self.now += seconds
        for _ in range(2):
            self.call_soon(self.stop)
            self.run_forever()
