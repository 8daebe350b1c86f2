"""Schedules in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from headrace.model.errors import NotFoundError
from headrace.model.schedule import (
    DECLARED_FOR,
    KEPT_FIRES,
    Declaration,
    DueSchedules,
    Fire,
    FireRecord,
    Firing,
    Schedule,
    ScheduleView,
)
from headrace.model.session import LeaderTerm
from headrace.stores.memory import intake
from headrace.stores.memory.leadership import leads
from headrace.stores.memory.state import State, atomic


@dataclass(slots=True)
class Row:
    """A schedule and its fires: `fired` by their time, `runs` in the order they were made."""

    declaration: Declaration
    declared_at: datetime
    after_at: datetime
    next_at: datetime | None = None
    paused: bool = False
    runs: list[FireRecord] = field(default_factory=list)

    @property
    def fired(self) -> set[datetime]:
        """The fire times that were fired."""
        return {run.fire_at for run in self.runs if not run.manual}

    def note(self, run: FireRecord) -> None:
        """Remember a fire, and forget the oldest where there are too many."""
        self.runs.append(run)
        del self.runs[:-KEPT_FIRES]


class MemoryScheduleStore:
    """`ports.schedule_store.ScheduleStore` over a dict; the port says what each verb promises."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._rows: dict[str, Row] = {}

    @atomic
    async def declare_schedules(self, declarations: Sequence[Declaration], *, renew: bool = False) -> None:
        """Store what an app asks for."""
        now = self._state.now()
        for declaration in declarations:
            row = self._rows.get(declaration.name)
            if renew:
                if row is not None:
                    row.declared_at = now
            elif row is None:
                self._rows[declaration.name] = Row(declaration, now, after_at=now)
            else:
                if row.declaration.rule.text != declaration.rule.text:
                    row.after_at, row.next_at = now, None
                row.declaration, row.declared_at = declaration, now

    @atomic
    async def due_schedules(self, *, limit: int) -> DueSchedules:
        """Return what has work to do."""
        now = self._state.now()
        active = [row for row in self._rows.values() if not row.paused and row.declared_at > now - DECLARED_FOR]
        due = [row for row in active if row.next_at is None or row.next_at <= now or row.after_at > now]
        ahead = [row.next_at for row in active if row.next_at is not None and row.next_at > now]
        schedules = tuple(Schedule(row.declaration, row.after_at) for row in sorted(due, key=_by_need)[:limit])
        return DueSchedules(now, schedules, min(ahead, default=None))

    @atomic
    async def fire_schedule(self, firing: Firing, *, term: LeaderTerm) -> list[UUID]:
        """Insert the jobs and move the schedule, all or nothing."""
        row, now = self._rows.get(firing.seen.name), self._state.now()
        if row is None or row.paused or not leads(self._state, term):
            return []
        same_rule = row.declaration.rule.text == firing.seen.declaration.rule.text
        if not same_rule or row.after_at != firing.seen.after_at or any(fire.fire_at > now for fire in firing.fires):
            return []
        fired = row.fired
        jobs = [fire.job for fire in firing.fires if fire.fire_at not in fired]
        intake.insert_jobs(self._state, jobs)
        for fire in firing.fires:
            if fire.fire_at not in fired:
                row.note(FireRecord(fire.fire_at, fire.job.id, now))
        row.after_at, row.next_at = firing.after_at, firing.next_at
        return [job.id for job in jobs]

    @atomic
    async def run_schedule(self, name: str, fire: Fire) -> None:
        """Insert a job of a schedule now."""
        row, job_id = self._known(name), fire.job.id
        if job_id not in {run.job_id for run in row.runs}:
            intake.insert_jobs(self._state, [fire.job])
            row.note(FireRecord(fire.fire_at, job_id, self._state.now(), manual=True))

    @atomic
    async def list_schedules(self) -> list[ScheduleView]:
        """Return every schedule, by name."""
        now = self._state.now()
        return [_view(self._rows[name], now) for name in sorted(self._rows)]

    @atomic
    async def list_fires(self, name: str, *, limit: int) -> list[FireRecord]:
        """Return the last fires of a schedule."""
        row = self._rows.get(name)
        return [] if row is None else row.runs[: -limit - 1 : -1]

    @atomic
    async def set_schedule_paused(self, name: str, *, paused: bool) -> None:
        """Pause a schedule or let it go on."""
        row = self._known(name)
        if row.paused and not paused:
            row.after_at, row.next_at = self._state.now(), None
        row.paused = paused

    @atomic
    async def forget_schedule(self, name: str) -> None:
        """Remove a schedule."""
        self._known(name)
        del self._rows[name]

    def _known(self, name: str) -> Row:
        row = self._rows.get(name)
        if row is None:
            raise NotFoundError(f"There is no schedule {name!r}.")
        return row


def _by_need(row: Row) -> tuple[bool, datetime | None, str]:
    """Order what is to be planned first, then what waits longest."""
    return row.next_at is not None, row.next_at, row.declaration.name


def _view(row: Row, now: datetime) -> ScheduleView:
    return ScheduleView(
        declaration=row.declaration,
        paused=row.paused,
        declared=row.declared_at > now - DECLARED_FOR,
        declared_at=row.declared_at,
        after_at=row.after_at,
        next_at=row.next_at,
        last=row.runs[-1] if row.runs else None,
    )
