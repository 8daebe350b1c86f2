"""Which process reaches which commit boundary, and the visit of one: die there, and let somebody go on.

A verb or statement that is neither in `ROUTES` nor in `EXEMPT` fails a test: add a route for it.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from tests.faults.campaign import APP, CAPPED_APP, Actor, Campaign
from tests.faults.failpoints import Action, Failpoint, sides
from tests.waiting import wait_until

#: How long a process may take to come to its boundary.
ARRIVAL = timedelta(seconds=20)
WORKER, CAPPED, LEADER = "worker", "capped", "leader"


@dataclass(frozen=True, slots=True)
class Route:
    """How a boundary is reached: by a worker, by the leader, or by a submitter's operation."""

    actor: str
    #: At the n-th pass; where there are many, not always the first.
    hit: int = 1
    #: Failpoints on the way.
    by: tuple[Failpoint, ...] = ()
    #: The worker is told to stop.
    stopped: bool = False
    #: Another worker is killed while it looks.
    prey: bool = False


_LOST_ANSWER = (Failpoint("insert_jobs.sql:after", Action.RAISE),)

ROUTES: dict[str, Route] = {
    "JobStore.claim_jobs": Route(WORKER, 2),
    "JobStore.complete_jobs": Route(WORKER, 2),
    "JobStore.fail_overdue_jobs": Route(LEADER),
    "JobStore.insert_jobs": Route("single"),
    "JobStore.prune_jobs": Route(LEADER),
    "JobStore.rescue_jobs": Route(WORKER),
    "JobStore.save_step": Route(WORKER, 2),
    "JobStore.stage_jobs": Route(WORKER, 2),
    "BatchStore.append_slice": Route("stream", 2),
    "BatchStore.cancel_batch": Route("cancel"),
    "BatchStore.close_batches": Route(WORKER),
    "BatchStore.create_batch": Route("batch"),
    "BatchStore.reopen_batch": Route("extend"),
    "BatchStore.retry_failed": Route("retry_failed"),
    "BatchStore.seal_batch": Route("stream"),
    "BatchStore.settle_cancelled": Route("cancel"),
    "BatchStore.sweep_batches": Route(LEADER),
    "SessionStore.close_session": Route(WORKER, stopped=True),
    "SessionStore.expire_sessions": Route(WORKER, prey=True),
    "SessionStore.lead": Route(LEADER),
    "SessionStore.register_session": Route(WORKER),
    "SessionStore.renew_session": Route(WORKER),
    "SessionStore.resign": Route(LEADER, stopped=True),
    "ControlStore.cancel_job": Route("cancel_job"),
    "ControlStore.retry_job": Route("retry_job"),
    "ControlStore.retry_queue": Route("retry_queue"),
    "ControlStore.set_caps": Route(CAPPED),
    "ControlStore.set_queue_paused": Route("pause"),
    "MemoStore.store_answer": Route("memo"),
    "ForeignIntake.insert_jobs_on": Route("foreign"),
    "abandon_batches.sql": Route(LEADER),
    "append_items.sql": Route("stream", 3),
    "cancel_batch.sql": Route("cancel"),
    "cancel_waiting_job.sql": Route("cancel_job"),
    "claim_capped_jobs.sql": Route(CAPPED, 2),
    "claim_jobs.sql": Route(WORKER, 3),
    "close_batches.sql": Route(WORKER, 2),
    "close_session.sql": Route(WORKER, stopped=True),
    "create_batch.sql": Route("batch"),
    "create_migrations.sql": Route("migrate"),
    "create_schema.sql": Route("migrate"),
    "drop_finished_again.sql": Route("single", by=_LOST_ANSWER),
    "expire_sessions.sql": Route(WORKER, prey=True),
    "fail_overdue_jobs.sql": Route(LEADER, 2),
    "finish_jobs.sql": Route(WORKER),
    "hold_term.sql": Route(LEADER),
    "insert_jobs.sql": Route("keyed"),
    "insert_keys.sql": Route("keyed"),
    "insert_retries.sql": Route("retry_failed"),
    "lead.sql": Route(LEADER, 2),
    "lock_batch.sql": Route("stream"),
    "lock_dead_letters.sql": Route("retry_queue"),
    "lock_finished.sql": Route("retry_job"),
    "lock_limits.sql": Route(CAPPED),
    "mark_swept.sql": Route(WORKER),
    "note_change.sql": Route("retry_job"),
    "note_migration.sql": Route("migrate"),
    "note_round.sql": Route("extend"),
    "notify.sql": Route("single"),
    "open_round.sql": Route("extend"),
    "prune_answers.sql": Route(LEADER),
    "prune_batches.sql": Route(LEADER),
    "prune_finished.sql": Route(LEADER),
    "prune_keys.sql": Route(LEADER),
    "prune_sessions.sql": Route(LEADER),
    "register_session.sql": Route(WORKER),
    "renew_session.sql": Route(WORKER, 2),
    "request_cancel.sql": Route("cancel_job"),
    "rescue_jobs.sql": Route(WORKER, 2),
    "resign.sql": Route(LEADER, stopped=True),
    "resume_batch.sql": Route("resume"),
    "return_jobs.sql": Route(WORKER),
    "save_step.sql": Route(WORKER),
    "seal_batch.sql": Route("stream"),
    "set_caps.sql": Route(CAPPED),
    "set_queue_paused.sql": Route("pause", 2),
    "settle_cancelled.sql": Route("cancel"),
    "stage_jobs.sql": Route(WORKER),
    "store_answer.sql": Route("memo"),
}
#: Verbs that write nothing.
EXEMPT = {
    "JobStore.claimed_jobs", "JobStore.load_steps", "SessionStore.sessions_on", "MemoStore.load_answer",
    "ForeignIntake.after_commit",
}  # fmt: skip


def boundaries() -> list[str]:
    """Return every boundary that is to be visited."""
    return [side for place in ROUTES for side in sides(place)]


def route_of(boundary: str) -> Route:
    """Return how a boundary is reached."""
    return ROUTES[boundary.rpartition(":")[0]]


async def visit(campaign: Campaign, boundary: str, action: Action = Action.KILL) -> None:
    """Let one process reach a boundary and die there, and see that what it had begun is ended by another."""
    route = route_of(boundary)
    campaign.tally.plan(f"{action} at a boundary")
    point = Failpoint(boundary, action, route.hit)
    if route.actor in (WORKER, CAPPED, LEADER):
        actor = await _visit_as_worker(campaign, route, point)
    else:
        actor = await _visit_as_client(campaign, route, point)
    if any(line["boundary"] == boundary and line["pid"] == actor.pid for line in campaign.fired()):
        campaign.tally.fire(f"{action} at a boundary")


async def _visit_as_worker(campaign: Campaign, route: Route, point: Failpoint) -> Actor:
    former = await campaign.leader()
    app = CAPPED_APP if route.actor == CAPPED else APP
    actor = campaign.worker(*route.by, point, leads=route.actor == LEADER, app=app)
    if route.stopped:
        await actor.started()
        if route.actor == LEADER:
            await _another_leads(campaign, former)
        actor.signal(signal.SIGTERM)
    if route.prey:
        await actor.started()
        prey = await campaign.worker(leads=False).started()
        prey.kill()
    with suppress(AssertionError):
        await actor.ended(ARRIVAL)
    actor.kill()
    return actor


async def _another_leads(campaign: Campaign, former: UUID | None) -> None:
    """Wait until a worker leads: only then it has something to resign."""

    async def leads() -> bool:
        return await campaign.leader() not in (None, former)

    await wait_until(leads, ARRIVAL)


async def _visit_as_client(campaign: Campaign, route: Route, point: Failpoint) -> Actor:
    token = f"{campaign.seed}-{point.boundary}"
    actor = await campaign.client(token, route.actor, *route.by, point).ended()
    again = await campaign.client(token, route.actor).ended(timedelta(seconds=90))
    assert again.process.exitcode == 0, f"{route.actor} after {point.boundary}:\n{again.log()}"
    return actor


async def visit_all(campaign: Campaign, chosen: Sequence[str], *, lanes: int = 2) -> None:
    """Visit boundaries: those of workers and of submitters side by side, those of the leader one by one."""
    kinds: dict[str, list[str]] = {"leader": [], "worker": [], "client": []}
    for boundary in chosen:
        actor = route_of(boundary).actor
        kind = "leader" if actor == LEADER else "worker" if actor in (WORKER, CAPPED) else "client"
        kinds[kind].append(boundary)
    async with asyncio.TaskGroup() as group:
        group.create_task(_lane(campaign, kinds["leader"]))
        for lane in range(lanes):
            group.create_task(_lane(campaign, kinds["worker"][lane::lanes]))
            group.create_task(_lane(campaign, kinds["client"][lane::lanes]))


async def _lane(campaign: Campaign, chosen: Sequence[str]) -> None:
    for boundary in chosen:
        await visit(campaign, boundary)
