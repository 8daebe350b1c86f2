"""The schedule store port: durable schedules, of which each fire time makes one job in the whole cluster.

A store keeps a row per schedule and one per fire. It knows nothing of cron: the scheduler computes fire times and says
in one verb which jobs to insert and how far the schedule is then. What makes a fire happen once is the unique fire time
of a schedule, checked in the transaction that inserts the job; leadership only spares the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from headrace.model.schedule import Declaration, DueSchedules, Fire, FireRecord, Firing, ScheduleView
from headrace.model.session import LeaderTerm


class ScheduleStore(Protocol):
    """Schedules, by the store's clock only."""

    async def declare_schedules(self, declarations: Sequence[Declaration], *, renew: bool = False) -> None:
        """Store what an app asks for, at its start: new schedules fire from now on.

        A known one takes the new definition and keeps its place and its pause; where its `rule.text` changed it is
        planned anew from now on. `renew` only notes that those known by these names are still wanted, and changes and
        makes none: an older version of an app must not undo what a newer one declared.
        """
        ...

    async def due_schedules(self, *, limit: int) -> DueSchedules:
        """Return up to `limit` schedules that are not paused, were declared within `DECLARED_FOR`, and have work to do.

        That is: not planned yet, a fire time has come, or `after_at` lies ahead (the clock was set back). `next_at` is
        the earliest planned time ahead.
        """
        ...

    async def fire_schedule(self, firing: Firing, *, term: LeaderTerm) -> list[UUID]:
        """Insert the jobs and move the schedule, in one transaction; return the ids of the jobs that were inserted.

        Nothing happens when the term is over, when the schedule is not as it was `seen` (rule, `after_at`), is paused
        or gone, or when a fire time has not come by the store's clock. A fire time that was fired before makes no job.
        The latest `KEPT_FIRES` fires of the schedule are kept. Hints are the caller's.
        """
        ...

    async def run_schedule(self, name: str, fire: Fire) -> None:
        """Insert a job of a schedule, paused or not, and note it as a manual fire: its time is none of the schedule's.

        A second call with the same job changes nothing. Raises NotFoundError.
        """
        ...

    async def list_schedules(self) -> list[ScheduleView]:
        """Return every schedule, by name, with its last fire."""
        ...

    async def list_fires(self, name: str, *, limit: int) -> list[FireRecord]:
        """Return the last fires of a schedule, the newest first; none for one that is not known."""
        ...

    async def set_schedule_paused(self, name: str, *, paused: bool) -> None:
        """Pause a schedule, or let a paused one fire from now on; fire times meanwhile are left out.

        One that is as asked stays as it is. Raises NotFoundError.
        """
        ...

    async def forget_schedule(self, name: str) -> None:
        """Remove a schedule and its fires; its jobs stay. Raises NotFoundError."""
        ...
