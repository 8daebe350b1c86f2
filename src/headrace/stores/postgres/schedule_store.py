"""Schedules on PostgreSQL: one transaction moves a schedule and inserts the jobs of its fire times.

Leadership is asked for last, just before the commit: a leader that freezes in the middle then holds a schedule's row,
not the leader's, so that another one can take over and fire the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
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
from headrace.stores.postgres.database import Database, Transaction
from headrace.stores.postgres.intake import insert_with
from headrace.stores.postgres.terms import hold_term


class _TermOverError(Exception):
    """Roll back: another process leads."""


class PostgresScheduleStore:
    """The schedule store port on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def declare_schedules(self, declarations: Sequence[Declaration], *, renew: bool = False) -> None:
        """Store what an app asks for, or note that it still does."""
        names = [declaration.name for declaration in declarations]
        if renew:
            await self._database.fetch("renew_schedules", names=names)
            return
        rules = [declaration.rule.text for declaration in declarations]
        definitions = [declaration.encode() for declaration in declarations]
        await self._database.fetch("declare_schedules", names=names, rules=rules, definitions=definitions)

    async def due_schedules(self, *, limit: int) -> DueSchedules:
        """Return what has work to do."""
        rows = await self._database.fetch("due_schedules", limit=limit, declared_for=DECLARED_FOR)
        schedules = tuple(
            Schedule(Declaration.decode(row["name"], row["definition"]), row["after_at"])
            for row in rows
            if row["name"] is not None
        )
        return DueSchedules(rows[0]["now"], schedules, rows[0]["ahead"])

    async def fire_schedule(self, firing: Firing, *, term: LeaderTerm) -> list[UUID]:
        """Insert the jobs and move the schedule, all or nothing."""

        async def work(tx: Transaction) -> list[UUID]:
            ids = await _move(tx, firing)
            if not await hold_term(tx, term):
                raise _TermOverError
            return ids

        try:
            return await self._database.run(work)
        except _TermOverError:
            return []

    async def run_schedule(self, name: str, fire: Fire) -> None:
        """Insert a job of a schedule now."""

        async def work(tx: Transaction) -> None:
            if not await tx.fetch("note_manual_fire", name=name, job_id=fire.job.id, fire_at=fire.fire_at):
                raise _no_schedule(name)
            await insert_with(tx, [fire.job], retrying=False)

        await self._database.run(work)

    async def list_schedules(self) -> list[ScheduleView]:
        """Return every schedule, by name."""
        return [_view(row) for row in await self._database.fetch("list_schedules", declared_for=DECLARED_FOR)]

    async def list_fires(self, name: str, *, limit: int) -> list[FireRecord]:
        """Return the last fires of a schedule."""
        return [_record(row) for row in await self._database.fetch("list_fires", name=name, limit=limit)]

    async def set_schedule_paused(self, name: str, *, paused: bool) -> None:
        """Pause a schedule or let it go on."""
        if not await self._database.fetch("set_schedule_paused", name=name, paused=paused):
            raise _no_schedule(name)

    async def forget_schedule(self, name: str) -> None:
        """Remove a schedule and its fires."""
        if not await self._database.fetch("forget_schedule", name=name):
            raise _no_schedule(name)


async def _move(tx: Transaction, firing: Firing) -> list[UUID]:
    name, fires = firing.seen.name, firing.fires
    moved = await tx.fetch(
        "move_schedule", name=name, rule=firing.seen.declaration.rule.text, seen_at=firing.seen.after_at,
        after_at=firing.after_at, next_at=firing.next_at, last_at=max((fire.fire_at for fire in fires), default=None),
    )  # fmt: skip
    if not moved or not fires:
        return []
    job_ids, fire_ats = [fire.job.id for fire in fires], [fire.fire_at for fire in fires]
    noted = {row["job_id"] for row in await tx.fetch("note_fires", name=name, job_ids=job_ids, fire_ats=fire_ats)}
    await tx.fetch("trim_fires", name=name, kept=KEPT_FIRES)
    return await insert_with(tx, [fire.job for fire in fires if fire.job.id in noted], retrying=False)


def _no_schedule(name: str) -> NotFoundError:
    return NotFoundError(f"There is no schedule {name!r}.")


def _view(row: Any) -> ScheduleView:
    return ScheduleView(
        declaration=Declaration.decode(row["name"], row["definition"]),
        paused=row["paused"],
        declared=row["declared"],
        declared_at=row["declared_at"],
        after_at=row["after_at"],
        next_at=row["next_at"],
        last=None if row["job_id"] is None else _record(row),
    )


def _record(row: Any) -> FireRecord:
    return FireRecord(row["fire_at"], row["job_id"], row["fired_at"], row["manual"])
