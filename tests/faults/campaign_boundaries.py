"""Which process reaches which commit boundary, and the visit of one: die there, and let somebody go on.

A verb or statement that is neither in `ROUTES` nor in `EXEMPT` fails a test: add a route for it.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from uuid import UUID

from tests.faults.campaign import APP, CAPPED_APP, Actor, Campaign, campaign
from tests.faults.failpoints import Action, Failpoint, sides
from tests.faults.site import LEASE, Site
from tests.waiting import wait_until

#: How long a process may take to come to its boundary.
ARRIVAL = timedelta(seconds=60)
#: How often a boundary is visited at most until its fault has fired.
VISITS = 3
#: Chooses boundaries for a run by hand.
PLACES = "FAULTS_PLACES"
WORKER, CAPPED, LEADER = "worker", "capped", "leader"


SEED = int(os.environ.get("FAULTS_SEED", "1"))


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
    #: The operation that a submitter does meanwhile, once the worker works.
    fed: str = ""


_LOST_ANSWER = (Failpoint("insert_job.sql:after", Action.RAISE),)

ROUTES: dict[str, Route] = {
    "JobStore.claim_jobs": Route(WORKER, 2),
    "JobStore.complete_jobs": Route(WORKER, 2),
    "JobStore.exchange_jobs": Route(WORKER, fed="backlog"),
    "JobStore.fail_overdue_jobs": Route(LEADER),
    "JobStore.insert_jobs": Route("single"),
    "JobStore.prune_jobs": Route(LEADER),
    "JobStore.rescue_jobs": Route(WORKER),
    "JobStore.save_step": Route(WORKER, 2, fed="flaky_batch"),
    "JobStore.stage_jobs": Route(WORKER, 2),
    "BatchStore.append_slice": Route("stream", 2),
    "BatchStore.cancel_batch": Route("cancel"),
    "BatchStore.close_batches": Route(WORKER),
    "BatchStore.pause_batch": Route("pause_batch"),
    "BatchStore.resume_batch": Route("pause_batch"),
    "BatchStore.settle_paused": Route("pause_batch", 2),
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
    "ControlStore.retry_jobs": Route("redrive", 2),
    "ControlStore.retry_queue": Route("retry_queue"),
    "ControlStore.set_queue_paused": Route("pause_queue"),
    "ControlStore.set_alarms": Route("operate"),
    "ControlStore.set_queue_closed": Route("drain"),
    "Admission.admit_jobs": Route(CAPPED, 2),
    "Admission.declare_limits": Route(CAPPED),
    "Admission.forget_limit": Route("operate"),
    "Admission.report_calls": Route(CAPPED, 2),
    "Admission.set_breaker": Route("operate"),
    "Admission.set_cap": Route("operate"),
    "Admission.set_rate": Route("operate"),
    "Admission.set_weight": Route("operate"),
    "Limiter.close_bucket": Route("operate"),
    "Limiter.declare": Route("operate"),
    "Limiter.forget": Route("operate"),
    "Limiter.give_back": Route(CAPPED),
    "Limiter.open_bucket": Route("operate"),
    "Limiter.take": Route(CAPPED, 2),
    "MemoStore.store_answer": Route("memo"),
    "ForeignIntake.insert_events_on": Route("emit"),
    "ForeignIntake.insert_jobs_on": Route("foreign"),
    "Inbox.accept": Route("emit"),
    "Inbox.accept_batch": Route("emit"),
    "Inbox.prune_inbox": Route("emit"),
    "Outbox.hold_events": Route("emit"),
    "Outbox.insert_events": Route("emit"),
    "Outbox.mark_published": Route("emit"),
    "Outbox.park_events": Route("emit"),
    "Outbox.prune_events": Route("emit"),
    "Outbox.release_parked": Route("emit"),
    "ScheduleStore.declare_schedules": Route("clock"),
    "ScheduleStore.forget_schedule": Route("clock"),
    "ScheduleStore.run_schedule": Route("clock"),
    "ScheduleStore.set_schedule_paused": Route("clock"),
    "abandon_batches.sql": Route(LEADER),
    "accept_events.sql": Route("emit"),
    "admit_jobs.sql": Route(CAPPED, 3),
    "append_items.sql": Route("stream", 3),
    "cancel_batch.sql": Route("cancel"),
    "cancel_waiting_job.sql": Route("cancel_job"),
    "claim_jobs.sql": Route(WORKER, 3),
    "close_batches.sql": Route(WORKER, 2),
    "close_bucket.sql": Route("operate"),
    "close_session.sql": Route(WORKER, stopped=True),
    "continue_batch.sql": Route("resume"),
    "count_in.sql": Route("cap_queue"),
    "create_batch.sql": Route("batch"),
    "create_migrations.sql": Route("migrate"),
    "create_schema.sql": Route("migrate"),
    "declare_breakers.sql": Route(CAPPED),
    "declare_caps.sql": Route(CAPPED),
    "declare_rates.sql": Route(CAPPED),
    "declare_schedules.sql": Route("clock"),
    "drop_ended_again.sql": Route(WORKER, fed="again"),
    "drop_finished_again.sql": Route("single", by=_LOST_ANSWER),
    "drop_parked.sql": Route("emit"),
    "expire_sessions.sql": Route(WORKER, prey=True),
    "fail_overdue_jobs.sql": Route(LEADER, 2),
    "finish_jobs.sql": Route(WORKER),
    "finish_logged.sql": Route(WORKER, fed="flaky_batch"),
    "forget_limit.sql": Route("operate", 2),
    "forget_schedule.sql": Route("clock"),
    "forget_weight.sql": Route("operate"),
    "free_held.sql": Route("emit", 2),
    "gate_queues.sql": Route(CAPPED),
    "give_units.sql": Route(CAPPED, 2),
    "hold_events.sql": Route("emit"),
    "hold_jobs.sql": Route("pause_batch"),
    "hold_term.sql": Route(LEADER),
    "insert_events.sql": Route("emit", 2),
    "insert_gated_jobs.sql": Route("capped_jobs"),
    "insert_job.sql": Route("single"),
    "insert_jobs.sql": Route("several"),
    "insert_keys.sql": Route("keyed"),
    "insert_retries.sql": Route("redrive", 2),
    "lead.sql": Route(LEADER, 2),
    "let_go_jobs.sql": Route("pause_batch"),
    "lock_batch.sql": Route("stream"),
    "lock_dead_letters.sql": Route("retry_queue"),
    "lock_finished.sql": Route("retry_job"),
    "lock_parked.sql": Route("emit"),
    "lock_retryable.sql": Route("redrive", 2),
    "mark_published.sql": Route("emit"),
    "mark_swept.sql": Route(WORKER, prey=True),
    "move_breakers.sql": Route(CAPPED),
    "note_all_handled.sql": Route("emit"),
    "note_change.sql": Route("retry_job"),
    "note_handled.sql": Route("emit"),
    "note_manual_fire.sql": Route("clock"),
    "note_migration.sql": Route("migrate"),
    "note_round.sql": Route("extend"),
    "notify.sql": Route("several"),
    "open_bucket.sql": Route("operate"),
    "open_round.sql": Route("extend"),
    "park_events.sql": Route("emit"),
    "pause_batch.sql": Route("pause_batch"),
    "prune_answers.sql": Route(LEADER),
    "prune_batches.sql": Route(LEADER),
    "prune_events.sql": Route("emit"),
    "prune_failed.sql": Route(LEADER),
    "prune_inbox.sql": Route("emit"),
    "prune_keys.sql": Route(LEADER),
    "prune_sessions.sql": Route(LEADER),
    "prune_shares.sql": Route(LEADER),
    "prune_succeeded.sql": Route(LEADER),
    "register_session.sql": Route(WORKER),
    "release_parked.sql": Route("emit"),
    "renew_schedules.sql": Route("clock"),
    "renew_session.sql": Route(WORKER, 2),
    "request_cancel.sql": Route("cancel_job"),
    "rescue_jobs.sql": Route(WORKER, 2),
    "resign.sql": Route(LEADER, stopped=True),
    "resume_batch.sql": Route("pause_batch"),
    "return_jobs.sql": Route(WORKER, fed="flaky_batch"),
    "save_step.sql": Route(WORKER, fed="flaky_batch"),
    "seal_batch.sql": Route("stream"),
    "set_alarms.sql": Route("operate"),
    "set_breaker.sql": Route("operate", 2),
    "set_cap.sql": Route("operate", 2),
    "set_queue_closed.sql": Route("drain", 2),
    "set_queue_paused.sql": Route("pause_queue", 2),
    "set_rate.sql": Route("operate", 2),
    "set_schedule_paused.sql": Route("clock"),
    "set_weight.sql": Route("operate"),
    "settle_cancelled.sql": Route("cancel"),
    "stage_jobs.sql": Route(WORKER),
    "store_answer.sql": Route("memo"),
    "take_units.sql": Route(CAPPED),
}
#: Verbs that write nothing, and what a leader does when a fire time has come: `test_schedules` kills it there.
EXEMPT = {
    "JobStore.claimed_jobs", "JobStore.load_steps", "JobStore.read_steps", "JobStore.running_job",
    "SessionStore.sessions_on", "MemoStore.load_answer",
    "ControlStore.queue_states", "Admission.eligible_jobs", "Admission.explain_job", "Admission.list_limits",
    "Admission.list_rates", "Limiter.levels", "ForeignIntake.after_commit", "ScheduleStore.due_schedules",
    "ScheduleStore.list_fires", "ScheduleStore.list_schedules", "ScheduleStore.fire_schedule", "move_schedule.sql",
    "note_fires.sql",
    "trim_fires.sql", "Inbox.handled", "Inbox.handled_among", "Outbox.list_events", "Outbox.list_parked",
    "Outbox.outbox_stats", "Outbox.waiting_events",
}  # fmt: skip
#: Model calls and names: no job depends on where their makers die; `test_llm_kills` kills those that make calls, and
#: `tests/integration/test_dedupe_races.py` loses the answers to claims of names.
CALLS = {
    "send_calls.sql", "spool_items.sql", "set_budget.sql", "forget_budget.sql", "release_names.sql",
    "prune_calls.sql", "prune_call_items.sql", "prune_spend.sql",
}  # fmt: skip
CALL_SCRIPTS = {
    "open_calls.lua", "send_calls.lua", "settle_calls.lua", "spool_items.lua", "reap_calls.lua", "set_budget.lua",
    "claim_names.lua", "release_names.lua", "prune_calls.lua", "prune_spend.lua",
}  # fmt: skip
#: Runs of workflows, signals, definitions, and statuses on the board: `test_workflow_kills` kills those that work runs
#: wherever they are, and holds what became of every node against an interpreter.
RUNS = {
    "cancel_run.sql", "cancel_run_jobs.sql", "end_cancelled_runs.sql", "finish_nodes.sql", "hold_runs.sql",
    "hold_snapshots.sql", "insert_run.sql", "insert_workflow.sql", "park_jobs.sql", "prune_runs.sql",
    "prune_signals.sql", "prune_snapshots.sql", "save_nodes.sql", "set_workflow_active.sql", "settle_jobs.sql",
}  # fmt: skip
RUN_SCRIPTS = {
    "cancel_run.lua", "note_changes.lua", "prune_runs.lua", "prune_signals.lua", "put_status.lua", "save_nodes.lua",
    "save_workflow.lua", "send_signal.lua", "set_workflow_active.lua", "settle_jobs.lua", "start_run.lua",
    "sweep_run.lua",
}  # fmt: skip
#: The store's own bus, and what paused work waits for: `test_event_kills` kills relays, agents, the callback service,
#: workers and servers, and counts every event and effect.
EVENTS = {
    "append_messages.sql", "commit_offsets.sql", "drop_log_members.sql", "due_handles.sql", "due_wakes.sql",
    "forget_log_group.sql", "forget_log_shares.sql", "give_up_shares.sql", "hold_old_handles.sql", "leave_group.sql",
    "lock_handle.sql", "lock_log_partitions.sql", "lock_token.sql", "make_log_shares.sql", "make_log_topics.sql",
    "mark_woken.sql", "prune_handles.sql", "prune_messages.sql",
    "renew_log_member.sql", "take_log_shares.sql",
}  # fmt: skip
#: Feeds, API tokens and the audit: no job depends on them; `tests/integration/test_feed_deaths.py` kills those that
#: append, and lets another one append the same.
SERVICE = {
    "hold_old_feeds.sql", "insert_token.sql", "note_actions.sql", "note_token_uses.sql", "prune_actions.sql",
    "prune_feeds.sql", "revoke_token.sql",
}  # fmt: skip
SERVICE_SCRIPTS = {
    "append_entries.lua", "insert_token.lua", "note_actions.lua", "note_token_uses.lua", "prune_actions.lua",
    "prune_feeds.lua", "revoke_token.lua",
}  # fmt: skip
EXEMPT |= CALLS | RUNS | EVENTS | SERVICE
#: The same for the scripts of the Redis store.
SCRIPT_ROUTES: dict[str, Route] = {
    "admit_jobs.lua": Route(CAPPED, 3),
    "append_slice.lua": Route("stream", 2),
    "cancel_batch.lua": Route("cancel"),
    "cancel_job.lua": Route("cancel_job"),
    "claim_jobs.lua": Route(WORKER, 3),
    "close_batches.lua": Route(WORKER, 2),
    "close_bucket.lua": Route("operate"),
    "complete_jobs.lua": Route(WORKER, 2),
    "create_batch.lua": Route("batch"),
    "declare.lua": Route("operate"),
    "declare_limits.lua": Route(CAPPED),
    "declare_schedules.lua": Route("clock"),
    "exchange_jobs.lua": Route(WORKER, fed="backlog"),
    "expire_sessions.lua": Route(WORKER, prey=True),
    "fail_overdue_jobs.lua": Route(LEADER, 2),
    "forget_limit.lua": Route("operate", 2),
    "forget_schedule.lua": Route("clock"),
    "give_back.lua": Route(CAPPED),
    "insert_jobs.lua": Route("single"),
    "lead.lua": Route(LEADER, 2),
    "open_bucket.lua": Route("operate"),
    "pause_batch.lua": Route("pause_batch"),
    "prune_batches.lua": Route(LEADER),
    "prune_ended.lua": Route(LEADER),
    "prune_index.lua": Route(LEADER),
    "register_session.lua": Route(WORKER),
    "renew_session.lua": Route(WORKER, 2),
    "reopen_batch.lua": Route("extend"),
    "report_calls.lua": Route(CAPPED, 2),
    "rescue_jobs.lua": Route(WORKER, 2),
    "resign.lua": Route(LEADER, stopped=True),
    "resume_batch.lua": Route("pause_batch"),
    "retry_failed.lua": Route("retry_failed"),
    "retry_job.lua": Route("retry_job"),
    "retry_jobs.lua": Route("redrive"),
    "retry_queue.lua": Route("retry_queue"),
    "run_schedule.lua": Route("clock"),
    "save_step.lua": Route(WORKER, fed="flaky_batch"),
    "seal_batch.lua": Route("stream"),
    "set_alarms.lua": Route("operate"),
    "set_breaker.lua": Route("operate", 2),
    "set_cap.lua": Route("operate", 2),
    "set_queue_closed.lua": Route("drain"),
    "set_queue_paused.lua": Route("pause_queue", 2),
    "set_rate.lua": Route("operate", 2),
    "set_schedule_paused.lua": Route("clock"),
    "set_weight.lua": Route("operate", 2),
    "settle_cancelled.lua": Route("cancel"),
    "settle_paused.lua": Route("pause_batch", 2),
    "stage_jobs.lua": Route(WORKER, 2),
    "store_answer.lua": Route("memo"),
    "sweep_batches.lua": Route(LEADER),
    "take.lua": Route(CAPPED, 2),
}
#: Sent before there is an epoch, by EVAL; and what a leader does when a fire time has come, on every store alike.
EXEMPT_SCRIPTS = {"create_namespace.lua", "probe_server.lua", "fire_schedule.lua"}
EXEMPT_SCRIPTS |= CALL_SCRIPTS | RUN_SCRIPTS | SERVICE_SCRIPTS


def boundaries(places: Iterable[str] = ROUTES) -> list[str]:
    """Return the boundaries of places, or those whose name the pattern `FAULTS_PLACES` finds."""
    wanted = re.compile(os.environ.get(PLACES, ""))
    return [side for place in places if wanted.search(place) for side in sides(place)]


def route_of(boundary: str) -> Route:
    """Return how a boundary is reached."""
    place = boundary.rpartition(":")[0]
    return ROUTES[place] if place in ROUTES else SCRIPT_ROUTES[place]


async def visited(site: Site, chosen: Sequence[str], action: Action, *, lanes: int) -> set[str]:
    """Visit boundaries under load, expect a clean verdict, and return those that were missed."""
    chosen = Random(SEED).sample(chosen, len(chosen))
    async with campaign(site, SEED) as run:
        await run.workers(2, leads=False, HEADRACE_RECOVERY_CHECK_INTERVAL="2s")
        run.load(2, pause=0.15)
        await visit_all(run, chosen, action, lanes=lanes)
        await run.reach_least()
        verdict = await run.verdict()
        missed = set(chosen) - {line["boundary"] for line in run.fired()}
    assert verdict.clean, verdict
    return missed


async def visit(campaign: Campaign, boundary: str, action: Action = Action.KILL) -> None:
    """Let one process meet its fault at a boundary, and see that what it had begun is ended, by itself or another."""
    route = route_of(boundary)
    campaign.tally.plan(f"{action} at a boundary")
    point = Failpoint(boundary, action, route.hit)
    as_worker = route.actor in (WORKER, CAPPED, LEADER)
    # Somebody else may have come first, or a term have ended before it was resigned.
    for _ in range(VISITS):
        actor = await (_visit_as_worker if as_worker else _visit_as_client)(campaign, route, point)
        if _fired(campaign, point, actor):
            campaign.tally.fire(f"{action} at a boundary")
            return


def _token(campaign: Campaign, point: Failpoint) -> str:
    """Name an operation that nobody has done before."""
    return f"{campaign.seed}-{point.boundary}-{point.action}-{len(campaign.actors)}"


def _fired(campaign: Campaign, point: Failpoint, actor: Actor) -> bool:
    return any(line["boundary"] == point.boundary and line["pid"] == actor.pid for line in campaign.fired())


async def _meet(campaign: Campaign, point: Failpoint, actor: Actor, within: timedelta = ARRIVAL) -> None:
    """Wait until a process has met its fault or has ended; one that froze is thawed after its lease is over."""
    with suppress(AssertionError):
        await wait_until(lambda: not actor.alive or _fired(campaign, point, actor), within)
    if point.action is Action.STOP and actor.alive:
        frozen_at = time.monotonic()
        await wait_until(lambda: time.monotonic() - frozen_at > 1.5 * LEASE.total_seconds())
        actor.signal(signal.SIGCONT)


async def _visit_as_worker(campaign: Campaign, route: Route, point: Failpoint) -> Actor:
    former = await campaign.leader()
    app = CAPPED_APP if route.actor == CAPPED else APP
    # Whoever waits for prey looks more often than the others, or they find it first.
    looks = {"HEADRACE_RECOVERY_CHECK_INTERVAL": "50ms"} if route.prey else {}
    actor = campaign.worker(*route.by, point, leads=route.actor == LEADER, app=app, **looks)
    if route.stopped:
        await actor.started()
        if route.actor == LEADER:
            await _another_leads(campaign, former)
        actor.signal(signal.SIGTERM)
    if route.prey:
        await _feed(campaign, point, actor)
    if route.fed:
        await actor.started()
        campaign.client(_token(campaign, point), route.fed)
    await _meet(campaign, point, actor)
    if point.action is not Action.KILL:
        await actor.started()
        actor.signal(signal.SIGTERM)
    with suppress(AssertionError):
        await actor.ended(ARRIVAL)
    actor.kill()
    return actor


async def _feed(campaign: Campaign, point: Failpoint, actor: Actor) -> None:
    """Let another worker die, again if somebody else found it first."""
    await actor.started()
    for _ in range(10):
        prey = await campaign.worker(leads=False).started()
        prey.kill()
        with suppress(AssertionError):
            await wait_until(lambda: not actor.alive or _fired(campaign, point, actor), timedelta(seconds=2))
            return


async def _another_leads(campaign: Campaign, former: UUID | None) -> None:
    """Wait until a worker leads: only then it has something to resign."""

    async def leads() -> bool:
        return await campaign.leader() not in (None, former)

    await wait_until(leads, ARRIVAL)


async def _visit_as_client(campaign: Campaign, route: Route, point: Failpoint) -> Actor:
    token = _token(campaign, point)
    actor = campaign.client(token, route.actor, *route.by, point)
    await _meet(campaign, point, actor, timedelta(seconds=90))
    await actor.ended(timedelta(seconds=90))
    again = await campaign.client(token, route.actor).ended(timedelta(seconds=90))
    assert again.process.exitcode == 0, f"{route.actor} after {point.boundary}:\n{again.log()}"
    return actor


async def visit_all(campaign: Campaign, chosen: Sequence[str], action: Action = Action.KILL, *, lanes: int = 2) -> None:
    """Visit boundaries, those of workers, leaders and submitters side by side."""
    kinds: dict[str, list[str]] = {"leader": [], "worker": [], "client": []}
    for boundary in chosen:
        actor = route_of(boundary).actor
        kinds[actor if actor in kinds else "worker" if actor == CAPPED else "client"].append(boundary)
    async with asyncio.TaskGroup() as group:
        group.create_task(_lead(campaign, kinds.pop("leader"), action))
        for boundaries_of_kind in kinds.values():
            for lane in range(lanes):
                group.create_task(_lane(campaign, boundaries_of_kind[lane::lanes], action))


async def _lead(campaign: Campaign, chosen: Sequence[str], action: Action) -> None:
    """Visit the boundaries of leaders, and then let one lead in peace: somebody has to close what others left."""
    # Who is told to stop has to lead for sure: with a rival that is not known.
    alone = [boundary for boundary in chosen if route_of(boundary).stopped]
    rivals = [boundary for boundary in chosen if boundary not in alone]
    async with asyncio.TaskGroup() as group:
        for lane in range(2):
            group.create_task(_lane(campaign, rivals[lane::2], action))
    await _lane(campaign, alone, action)
    campaign.worker()


async def _lane(campaign: Campaign, chosen: Sequence[str], action: Action) -> None:
    for boundary in chosen:
        await visit(campaign, boundary, action)
