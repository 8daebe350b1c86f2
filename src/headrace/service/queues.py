"""`/queues`: figures of queues, and what operators do to them."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from headrace.app import App
from headrace.engine.operations import clean_up, find_queue, retry_queue
from headrace.engine.queries import to_json
from headrace.model.api_token import Scope
from headrace.model.backlog import QueueState
from headrace.model.durations import parse_duration
from headrace.model.names import check_name
from headrace.model.stats import Retention
from headrace.service.auth import needs
from headrace.service.served import Served
from headrace.service.submitting import Duration

router = APIRouter(prefix="/queues", tags=["queues"])


class Pause(BaseModel):
    """How a queue is paused."""

    model_config = ConfigDict(extra="forbid")

    reason: str | None = Field(default=None, max_length=500, description="shown to whoever looks at the queue")
    force: StrictBool = Field(default=False, description="also a queue that nobody has used yet")


class Cleanup(BaseModel):
    """What is removed."""

    model_config = ConfigDict(extra="forbid")

    retention: Duration = Field(description="keep what is younger: seconds, or such as `7d`", examples=["7d"])


@router.get("")
async def list_queues(app: Served) -> dict[str, Any]:
    """Return every queue that has jobs, workers or a setting: counts by state, age of the oldest, rates, workers."""
    return {"queues": to_json(await app.runtime.stores.inspect.queue_stats())}


@router.get("/{name}")
async def get_queue(app: Served, name: str) -> dict[str, Any]:
    """Return the figures of a queue; `estimated` names those that a big store does not count."""
    found: dict[str, Any] = to_json(await find_queue(app.runtime.stores.inspect, check_name("queue", name)))
    return found


@router.get("/{name}/stats", operation_id="get_queue_stats")
async def get_stats(app: Served, name: str) -> dict[str, Any]:
    """Return the figures of a queue, as `/queues/{name}` does."""
    return await get_queue(app, name)


@router.post("/{name}/pause", dependencies=[needs(Scope.OPERATE)])
async def pause(app: Served, name: str, body: Pause | None = None) -> dict[str, Any]:
    """Stop claiming jobs of a queue; running jobs go on, new ones may be enqueued."""
    wanted = body or Pause()
    await app.pause(name, reason=wanted.reason, force=wanted.force)
    return await _state_of(app, name)


@router.post("/{name}/resume", dependencies=[needs(Scope.OPERATE)])
async def resume(app: Served, name: str) -> dict[str, Any]:
    """Claim jobs of a paused queue again, and let jobs into one that was drained."""
    await _find(app, name)
    await app.resume(name)
    return await _state_of(app, name)


@router.post("/{name}/retry", dependencies=[needs(Scope.OPERATE)])
async def retry(app: Served, name: str) -> dict[str, Any]:
    """Run the jobs of a queue again that have failed by now, each as a new job; those retried before are left alone."""
    await _find(app, name)
    return {"queue": name, "retried": await retry_queue(app.runtime.stores, name)}


@router.post("/{name}/cleanup", dependencies=[needs(Scope.OPERATE)])
async def cleanup(app: Served, name: str, body: Cleanup) -> dict[str, Any]:
    """Remove finished jobs older than `retention` now; jobs of a batch go once the batch is closed."""
    await _find(app, name)
    age = parse_duration(body.retention, field="retention")
    kept = Retention(succeeded=age, failed=age, cancelled=age, answers=app.settings.recovery.keep_answers)
    return {"queue": name, "removed": (await clean_up(app.runtime.stores, kept, queue=name)).removed}


async def _find(app: App, name: str) -> None:
    """Raise NotFoundError for a queue that neither the app nor the store knows."""
    if check_name("queue", name) not in {*app.registry.queue_rules, *app.registry.queues()}:
        await find_queue(app.runtime.stores.inspect, name)


async def _state_of(app: App, name: str) -> dict[str, Any]:
    state = (await app.runtime.stores.control.queue_states()).get(name, QueueState())
    return {"queue": name, "paused": state.paused, "closed": state.closed, "reason": state.paused_reason}
