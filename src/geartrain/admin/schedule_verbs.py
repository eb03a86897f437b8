"""Verbs on schedules."""

from geartrain.admin.authorization import may_read
from geartrain.admin.base import AdminBase
from geartrain.admin.loop_break import convert
from geartrain.admin.schedule import ONCE, Schedule
from geartrain.admin.schedules import Schedules
from geartrain.admin.views import ScheduleView
from geartrain.cron import UTC


class ScheduleVerbs(AdminBase):
    """List, show, set, remove, run, pause and resume schedules."""

    _schedules: Schedules

    async def crons(self) -> list[ScheduleView]:
        """All schedules."""
        visible = (schedule for schedule in self._schedules.all() if may_read(schedule.function))
        return await convert(visible, Schedule.view)

    def function_of_schedule(self, name: str) -> bytes:
        """The function of a schedule; empty if there is none of that name."""
        return self._schedules.function_of(name)

    def cron(self, name: str) -> ScheduleView:
        """One schedule."""
        return self._schedules.get(name).view()

    def cron_set(
        self,
        name: str,
        expression: str,
        function: bytes,
        payload: bytes = b"",
        priority: str = "normal",
        unique: bool = False,
        timezone: str = UTC,
        missed: str = ONCE,
        expires: float = 0.0,
    ) -> ScheduleView:
        """Create or replace a schedule."""
        self._begin_change(function)
        schedule = Schedule(
            name=name,
            expression=expression,
            function=function,
            payload=payload,
            priority=priority,
            unique=unique,
            timezone=timezone,
            missed=missed,
            expires=expires,
        )
        self._schedules.set(schedule)
        return schedule.view()

    def cron_remove(self, name: str) -> None:
        """Delete a schedule; jobs that it submitted remain."""
        self._begin_change()
        self._schedules.remove(name)

    def cron_run(self, name: str) -> bytes:
        """Submit the job of a schedule now, besides its times, and return its handle."""
        self._begin_change()
        return self._schedules.run(name)

    def cron_pause(self, name: str) -> None:
        """Pause a schedule."""
        self._begin_change()
        self._schedules.pause(name, True)

    def cron_resume(self, name: str) -> None:
        """Resume a paused schedule. Runs that it missed while paused are not repeated."""
        self._begin_change()
        self._schedules.pause(name, False)
