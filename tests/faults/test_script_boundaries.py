"""Processes that die, or whose calls fail or hang, before and after every script of the Redis store that writes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from random import Random

import pytest

from tests.faults import campaign_boundaries
from tests.faults.campaign import campaign
from tests.faults.campaign_boundaries import CAPPED, LEADER, WORKER, Route, visit_all
from tests.faults.failpoints import Action, sides, writing_scripts
from tests.faults.site import Site

SEED = int(os.environ.get("FAULTS_SEED", "1"))
ROUTES: dict[str, Route] = {
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
    "forget_schedule.lua": Route("clock"),
    "give_back.lua": Route(CAPPED),
    "insert_jobs.lua": Route("single"),
    "lead.lua": Route(LEADER, 2),
    "prune_batches.lua": Route(LEADER),
    "prune_ended.lua": Route(LEADER),
    "prune_index.lua": Route(LEADER),
    "register_session.lua": Route(WORKER),
    "renew_session.lua": Route(WORKER, 2),
    "reopen_batch.lua": Route("extend"),
    "report_calls.lua": Route(CAPPED, 2),
    "rescue_jobs.lua": Route(WORKER, 2),
    "resign.lua": Route(LEADER, stopped=True),
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
    "set_weight.lua": Route("operate"),
    "settle_cancelled.lua": Route("cancel"),
    "stage_jobs.lua": Route(WORKER, 2),
    "store_answer.lua": Route("memo"),
    "sweep_batches.lua": Route(LEADER),
    "take.lua": Route(CAPPED, 2),
}
#: Sent before there is an epoch, by EVAL; and what a leader does when a fire time has come, on every store alike.
EXEMPT = {"create_namespace.lua", "probe_server.lua", "fire_schedule.lua"}
#: Those of every run: what claims, records and closes.
FEW = ("claim_jobs.lua", "complete_jobs.lua", "close_batches.lua")


@pytest.fixture(autouse=True)
def _routes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let visits of boundaries follow the routes of scripts."""
    monkeypatch.setattr(campaign_boundaries, "ROUTES", ROUTES)


def test_every_script_that_writes_has_a_boundary() -> None:
    """A new script that writes has to be added to the campaign."""
    assert set(ROUTES) == set(writing_scripts()) - EXEMPT


async def visited(site: Site, action: Action, places: Sequence[str], lanes: int) -> set[str]:
    """Visit boundaries under load, expect a clean verdict, and return those that were missed."""
    chosen = [side for place in places for side in sides(place)]
    Random(SEED).shuffle(chosen)
    async with campaign(site, SEED) as run:
        await run.workers(2, leads=False, HEADRACE_RECOVERY_CHECK_INTERVAL="2s")
        run.load(2, pause=0.15)
        await visit_all(run, chosen, action, lanes=lanes)
        await run.reach_least()
        verdict = await run.verdict()
        missed = set(chosen) - {line["boundary"] for line in run.fired()}
    assert verdict.clean, verdict
    return missed


@pytest.mark.timeout(120)
async def test_a_kill_around_a_few_scripts_loses_and_doubles_nothing(fragile_redis: Site) -> None:
    """kill -9 before and after what claims, records and closes: what was begun is ended once."""
    assert await visited(fragile_redis, Action.KILL, FEW, lanes=3) == set()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("action", list(Action))
async def test_faults_around_every_script_lose_and_double_nothing(fragile_redis: Site, action: Action) -> None:
    """Killed, frozen, refused, or told too late or not at all, at every script: nothing is lost or doubled."""
    assert await visited(fragile_redis, action, list(ROUTES), lanes=3 if action is Action.KILL else 6) == set()
