"""Schedules on Redis: one script moves a schedule and inserts the jobs of its fire times."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from headrace.model.errors import NotFoundError
from headrace.model.job import NewJob
from headrace.model.schedule import (
    DECLARED_FOR,
    Declaration,
    DueSchedules,
    Fire,
    FireRecord,
    Firing,
    Schedule,
    ScheduleView,
)
from headrace.model.session import LeaderTerm
from headrace.stores.redis.namespace import Namespace
from headrace.stores.redis.rows import instant, leader_words, micros, parse_id, span, spec_fields, to_json


class RedisScheduleStore:
    """The schedule store port on Redis."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    async def declare_schedules(self, declarations: Sequence[Declaration], *, renew: bool = False) -> None:
        """Store what an app asks for, or note that it still does."""
        words = [word for one in declarations for word in (one.name, one.rule.text, one.encode())]
        if words:
            await self._namespace.run("declare_schedules", int(renew), *words)

    async def due_schedules(self, *, limit: int) -> DueSchedules:
        """Return what has work to do."""
        now, ahead, *rows = await self._namespace.run("due_schedules", limit, span(DECLARED_FOR))
        schedules = tuple(
            Schedule(Declaration.decode(name, definition), instant(after_at))
            for name, definition, after_at in zip(rows[::3], rows[1::3], rows[2::3], strict=True)
        )
        return DueSchedules(instant(now), schedules, instant(ahead) if ahead else None)

    async def fire_schedule(self, firing: Firing, *, term: LeaderTerm) -> list[UUID]:
        """Insert the jobs and move the schedule, all or nothing."""
        seen = firing.seen
        fires = [[*_job_words(fire.job), str(micros(fire.fire_at))] for fire in firing.fires]
        times = [str(micros(at)) for at in (seen.after_at, firing.after_at, firing.next_at)]
        words = (*leader_words(term), seen.name, seen.declaration.rule.text, *times, to_json(fires))
        return [parse_id(made) for made in await self._namespace.run("fire_schedule", *words)]

    async def run_schedule(self, name: str, fire: Fire) -> None:
        """Insert a job of a schedule now."""
        fields, *words = _job_words(fire.job)
        at = str(micros(fire.fire_at))
        if not await self._namespace.run("run_schedule", name, to_json(fields), *map(str, words), at):
            raise _no_schedule(name)

    async def list_schedules(self) -> list[ScheduleView]:
        """Return every schedule, by name."""
        now, rows = await self._namespace.run("list_schedules")
        return [_view(instant(now), *row) for row in rows]

    async def list_fires(self, name: str, *, limit: int) -> list[FireRecord]:
        """Return the last fires of a schedule."""
        return [_record(text) for text in await self._namespace.run("list_fires", name, limit)]

    async def set_schedule_paused(self, name: str, *, paused: bool) -> None:
        """Pause a schedule or let it go on."""
        if not await self._namespace.run("set_schedule_paused", name, int(paused)):
            raise _no_schedule(name)

    async def forget_schedule(self, name: str) -> None:
        """Remove a schedule and its fires."""
        if not await self._namespace.run("forget_schedule", name):
            raise _no_schedule(name)


def _job_words(job: NewJob) -> tuple[tuple[str, ...], str, str, int]:
    """Return what an insert has to know of a job: fields of its specification, id, arguments, not before when."""
    return spec_fields(job.spec), job.id.hex, job.args, 0 if job.run_at is None else micros(job.run_at)


def _no_schedule(name: str) -> NotFoundError:
    return NotFoundError(f"There is no schedule {name!r}.")


def _view(  # noqa: PLR0913 - a row
    now: datetime, name: str, definition: str, paused: str | None, declared_at: str, after_at: str,
    next_at: str | None, last: str | None,
) -> ScheduleView:  # fmt: skip
    declared = instant(declared_at)
    return ScheduleView(
        declaration=Declaration.decode(name, definition),
        paused=paused is not None,
        declared=declared > now - DECLARED_FOR,
        declared_at=declared,
        after_at=instant(after_at),
        next_at=None if next_at is None else instant(next_at),
        last=None if last is None else _record(last),
    )


def _record(text: str) -> FireRecord:
    job_id, fire_at, fired_at, manual = text.split(" ")
    return FireRecord(instant(fire_at), parse_id(job_id), instant(fired_at), manual == "1")
