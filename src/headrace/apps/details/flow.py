"""The tasks of details: a request begins, its parts ask for their items, and a coordinator sees to the end.

Guaranteed: a batch that was accepted ends with one `completed` entry, whatever dies meanwhile. The coordinator runs
from its first line whenever it is woken, and comes to the same: the plan travels with the request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace import Context
from headrace.apps.details.abandoned import register_sweep
from headrace.apps.details.coordinating import Coordinator
from headrace.apps.details.ending import end_early
from headrace.apps.details.means import Means
from headrace.apps.details.names import (
    AGGREGATE,
    FLOW_TASK,
    FLOWS_QUEUE,
    INTAKE_QUEUE,
    INTAKE_TASK,
    REQUESTED,
    SUBTASK_TASK,
    SUBTASKS_QUEUE,
)
from headrace.apps.details.priorities import priority_class
from headrace.apps.details.request import parse_request
from headrace.apps.details.trigger import register_trigger
from headrace.model.backoff import Backoff

if TYPE_CHECKING:
    from headrace import App
    from headrace.tasks import Task

RETRY = Backoff.exponential(max_attempts=8, base="200ms", cap="10s")
#: In single-call mode a thousand items are twenty calls one after another.
TIMEOUT = "1h"


def register_tasks(app: App, means: Means) -> Task[..., Any]:
    """Add the tasks to an app and return the one that requests are enqueued with."""
    subtask = _subtask(app)
    flow = _flow(app, means, subtask)
    register_trigger(app)
    register_sweep(app, means)

    @app.task(name=INTAKE_TASK, queue=INTAKE_QUEUE, retry=RETRY)
    async def details_intake(request: dict[str, Any], plan: dict[str, Any], ctx: Context) -> str:
        """Let a request begin, and return the id of its flow's job."""
        batch_id = str(ctx.job_id)
        call = flow.options(key=batch_id, priority=priority_class(request["priority"]))
        return str((await call.enqueue(batch_id=batch_id, request=request, plan=plan)).id)

    return details_intake


def _flow(app: App, means: Means, subtask: Task[..., Any]) -> Task[..., Any]:
    @app.task(name=FLOW_TASK, queue=FLOWS_QUEUE, retry=RETRY, timeout=TIMEOUT)
    async def genesis_detail_batch_flow(
        batch_id: str, request: dict[str, Any], plan: dict[str, Any], ctx: Context
    ) -> dict[str, Any]:
        """See to a batch until it has ended."""
        coordinator = Coordinator(means, subtask, ctx, batch_id, parse_request(request), plan)
        try:
            return await coordinator.run()
        except Exception:
            if ctx.last_try:
                await end_early(means, {"request": request, "plan": plan}, batch_id, "failed")
            raise

    return genesis_detail_batch_flow


def _subtask(app: App) -> Task[..., Any]:
    pools = [app.settings.llm_settings().pool_name]

    @app.task(name=SUBTASK_TASK, queue=SUBTASKS_QUEUE, retry=RETRY, pools=pools)
    async def details_subtask(  # noqa: PLR0913 - the public form of a subtask, with what goes along
        subtask_id: str, count: int, batch_index: int, calls: int, first_call: int, asked: dict[str, Any],
        correlation: str, ctx: Context, places: list[str] | None = None,
    ) -> None:  # fmt: skip
        """Ask for the items of a part: the request leaves with the success of this job."""
        payload = {**asked, "task_id": subtask_id, "count": count, "batch_index": batch_index, "calls": calls}
        payload |= {"first_call": first_call} | ({"places": places} if places else {})
        ctx.emit(
            REQUESTED, payload, aggregate_type=AGGREGATE, aggregate_id=asked["session_id"], correlation_id=correlation
        )

    return details_subtask
