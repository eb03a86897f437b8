"""Something besides jobs that has to be done at a time."""

from mypy_extensions import mypyc_attr

from geartrain.engine.agenda import NEVER


@mypyc_attr(allow_interpreted_subclasses=True)
class Alarm:
    """One who is in `engine.alarms` is called at every tick, and no later than `at`."""

    def __init__(self) -> None:
        self.at = NEVER  # when it must be called

    def look(self, now: float) -> None:
        """Do what is due, and set `at` anew. It may be called early: the clock may have been moved."""
