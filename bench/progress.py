"""How far a run is: a bar on a terminal, plain lines elsewhere. Always on stderr, so that a table can be piped."""

import sys
import time
from collections.abc import Callable
from typing import TextIO

WIDTH = 24
LINE = 110  # characters; what is longer would wrap and stay


class Progress:
    """So many steps, of which some are done."""

    def __init__(self, steps: int, out: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.steps = steps
        self.done = 0
        self.out = out or sys.stderr
        self.clock = clock
        self.began = clock()

    def step(self, what: str) -> None:
        """This comes now."""
        text = f"{self.done + 1}/{self.steps} {what}"
        if self.out.isatty():
            text = f"{self.bar()} {text}{self.left()}"
            self.out.write(f"\r{text[:LINE]:<{LINE}}")
        else:
            self.out.write(f"[{text}]\n")
        self.out.flush()

    def finish(self) -> None:
        """It is done."""
        self.done += 1

    def say(self, text: str) -> None:
        """Something that stays on the screen."""
        self.out.write(f"\r{text:<{LINE}}\n" if self.out.isatty() else f"{text}\n")
        self.out.flush()

    def end(self) -> None:
        if self.out.isatty():
            self.out.write(f"\r{self.bar()} done{'':{LINE - WIDTH - 7}}\n")
            self.out.flush()

    def bar(self) -> str:
        filled = WIDTH * self.done // max(self.steps, 1)
        return f"[{'#' * filled}{'.' * (WIDTH - filled)}]"

    def left(self) -> str:
        """How long it may still take, once that can be guessed."""
        if self.done < 3:
            return ""
        seconds = int((self.clock() - self.began) / self.done * (self.steps - self.done))
        return f" ({seconds // 60}:{seconds % 60:02} left)"
