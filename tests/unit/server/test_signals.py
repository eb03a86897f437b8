"""Signal handlers inside the event loop."""

import asyncio
import os
import signal

from geartrain.server.process import signals


def test_signals_reach_their_handlers_and_are_ignored_afterwards() -> None:
    before = signal.getsignal(signal.SIGUSR2)

    async def wait_for_one() -> str:
        running = asyncio.get_running_loop()
        heard = running.create_future()
        with signals.handled(running, {signal.SIGUSR2: lambda: heard.set_result("heard")}):
            os.kill(os.getpid(), signal.SIGUSR2)
            return await asyncio.wait_for(heard, 10)

    try:
        assert asyncio.run(wait_for_one()) == "heard"
        assert signal.getsignal(signal.SIGUSR2) is signal.SIG_IGN
        assert signal.SIGUSR2 not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
        os.kill(os.getpid(), signal.SIGUSR2)
    finally:
        signal.signal(signal.SIGUSR2, before)
