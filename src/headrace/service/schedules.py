"""`/schedules`: what runs by the clock, when next, and what came of it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from headrace.engine import schedules
from headrace.model.api_token import Scope
from headrace.model.names import check_name
from headrace.service.auth import needs
from headrace.service.served import Served

router = APIRouter(prefix="/schedules", tags=["schedules"])


@router.get("")
async def list_schedules(app: Served) -> dict[str, Any]:
    """Return every schedule: its rule, its next fire times, its last job."""
    found = await schedules.list_schedules(app.runtime.stores)
    return {"schedules": [schedules.schedule_document(facts) for facts in found]}


@router.post("/{name}/pause", dependencies=[needs(Scope.OPERATE)])
async def pause(app: Served, name: str) -> dict[str, Any]:
    """Fire a schedule no more until it is resumed; its jobs that there are go on."""
    await schedules.set_schedule_paused(app.runtime.stores, check_name("schedule", name), paused=True)
    return {"schedule": name, "paused": True}


@router.post("/{name}/resume", dependencies=[needs(Scope.OPERATE)])
async def resume(app: Served, name: str) -> dict[str, Any]:
    """Let a paused schedule fire again, from now on: what it missed meanwhile is not made up for."""
    await schedules.set_schedule_paused(app.runtime.stores, check_name("schedule", name), paused=False)
    return {"schedule": name, "paused": False}


@router.post("/{name}/run-now", dependencies=[needs(Scope.OPERATE)], status_code=201, operation_id="run_schedule_now")
async def run_now(app: Served, name: str) -> dict[str, Any]:
    """Make a job of a schedule at once; the schedule itself goes on as planned, or stays paused."""
    job_id = await schedules.run_schedule(app.runtime.stores, check_name("schedule", name))
    return {"schedule": name, "job": str(job_id)}
