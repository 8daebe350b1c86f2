"""What operators ask of schedules; the command line and the HTTP service share it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from headrace.engine.cron import timetable
from headrace.engine.loops.scheduler import NO_SCHEDULES, job_of
from headrace.engine.queries import to_json
from headrace.model.errors import ConfigError, InvalidInputError, NotFoundError
from headrace.model.schedule import Fire, FireRecord, ScheduleView
from headrace.ports.schedule_store import ScheduleStore
from headrace.ports.stores import Stores

#: Fire times ahead that are shown.
UPCOMING = 3


@dataclass(frozen=True, slots=True)
class ScheduleFacts:
    """A schedule as people see it, and its next fire times by the store's clock; none while it does not fire."""

    view: ScheduleView
    upcoming: tuple[datetime, ...]

    @property
    def state(self) -> str:
        """`active`, `paused`, or `undeclared`: no worker has asked for it for ten minutes, so it does not fire."""
        if self.view.paused:
            return "paused"
        return "active" if self.view.declared else "undeclared"


def schedule_store(stores: Stores) -> ScheduleStore:
    """Return the schedules of a store. Raises ConfigError where it keeps none."""
    if stores.schedules is None:
        raise ConfigError(NO_SCHEDULES)
    return stores.schedules


async def list_schedules(stores: Stores) -> list[ScheduleFacts]:
    """Return every schedule by name."""
    views = await schedule_store(stores).list_schedules()
    now = (await stores.inspect.store_info()).now if views else None
    return [ScheduleFacts(view, _upcoming(view, now)) for view in views]


def _upcoming(view: ScheduleView, now: datetime | None) -> tuple[datetime, ...]:
    if view.paused or not view.declared or now is None:
        return ()
    try:
        return tuple(timetable(view.declaration.rule).upcoming(now, UPCOMING))
    except InvalidInputError:  # a zone that only other machines know
        return ()


def schedule_document(facts: ScheduleFacts) -> dict[str, Any]:
    """Return a schedule as one document."""
    view, rule, spec = facts.view, facts.view.declaration.rule, facts.view.declaration.spec
    return {
        "name": view.name,
        "state": facts.state,
        "cron": rule.expression,
        "tz": rule.tz,
        "catch_up": rule.catch_up,
        "task": spec.task,
        "queue": spec.queue,
        "declared_at": to_json(view.declared_at),
        "upcoming": to_json(facts.upcoming),
        "last": to_json(view.last),
    }


async def find_schedule(stores: Stores, name: str) -> ScheduleView:
    """Return a schedule. Raises NotFoundError naming those there are."""
    views = await schedule_store(stores).list_schedules()
    for view in views:
        if view.name == name:
            return view
    known = ", ".join(view.name for view in views) or "none yet"
    raise NotFoundError(f"no schedule {name!r}; there are: {known}")


async def list_fires(stores: Stores, name: str, *, limit: int) -> list[FireRecord]:
    """Return the last fires of a schedule, the newest first. Raises NotFoundError."""
    await find_schedule(stores, name)
    return await schedule_store(stores).list_fires(name, limit=limit)


async def show_schedule(stores: Stores, name: str, *, fires: int) -> tuple[ScheduleFacts, list[FireRecord]]:
    """Return a schedule with so many of its last fires, the newest first. Raises NotFoundError."""
    view = await find_schedule(stores, name)
    info, last = await stores.inspect.store_info(), await schedule_store(stores).list_fires(name, limit=fires)
    return ScheduleFacts(view, _upcoming(view, info.now)), last


async def set_schedule_paused(stores: Stores, name: str, *, paused: bool) -> None:
    """Pause a schedule, or let it fire from now on. Raises NotFoundError."""
    await find_schedule(stores, name)
    await schedule_store(stores).set_schedule_paused(name, paused=paused)


async def run_schedule(stores: Stores, name: str) -> UUID:
    """Make a job of a schedule now and return its id. Raises NotFoundError."""
    view = await find_schedule(stores, name)
    now = (await stores.inspect.store_info()).now
    assert now is not None
    job = job_of(view.declaration, now)
    await schedule_store(stores).run_schedule(name, Fire(now, job))
    stores.notifier.hint(f"queue:{job.spec.queue}")
    return job.id


async def forget_schedule(stores: Stores, name: str, *, force: bool) -> None:
    """Remove a schedule and its history; its jobs stay.

    Raises NotFoundError, and InvalidInputError for one that workers still declare unless `force`d: it would come back
    with the next start of one.
    """
    view = await find_schedule(stores, name)
    if view.declared and not force:
        last = view.declared_at.isoformat(timespec="seconds")
        rule = (
            f"is declared by a worker (last at {last}) and would come back when one starts; take it out of the code "
            "first, pause it, or use --force"
        )
        raise InvalidInputError("schedule", rule, name)
    await schedule_store(stores).forget_schedule(name)
