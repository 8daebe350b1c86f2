"""Why a job is not running, and how many could start, by the predicate that admits jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from headrace.model.admission import Explanation, WaitReason
from headrace.model.elastic import Eligible
from headrace.model.job import JobState
from headrace.model.limits import Level
from headrace.stores.postgres.database import Database, Row

#: Jobs before it that are counted.
MAX_AHEAD = 1_000

_REASONS = {
    "breaker": WaitReason.BREAKER,
    "rate": WaitReason.RATE,
    "running": WaitReason.CAP,
    "key": WaitReason.CAP,
}


async def explain_job(database: Database, job_id: UUID, levels: Mapping[str, Level] | None) -> Explanation | None:
    """Return the one reason, or None for an unknown job."""
    row = await database.fetch_one("explain_job", job_id=job_id, bound=MAX_AHEAD)
    if row is None:
        return None
    state = JobState(row["state"])
    if state is not JobState.READY or row["held"] is not None:
        return _waits_elsewhere(job_id, state, row)
    if row["paused"]:
        return _because(job_id, WaitReason.PAUSED, row["queue"], {"paused_reason": row["reason"]})
    if row["cancelling"] is not None:
        return _because(job_id, WaitReason.CANCELLING, str(row["cancelling"]))
    ahead = {"ahead": min(row["ahead"], MAX_AHEAD)}
    if row["gated"]:
        lane = row["lane"] or "{}"
        gate = {"queue": row["queue"], "lane": lane, "cost": row["cost"], "levels": _levels(levels)}
        found = await database.fetch_one("find_obstacle", **gate)
        if found is not None:
            facts = {**_facts(found), **ahead}
            return Explanation(job_id, state, _REASONS[found["kind"]], found["name"], found["until"], facts)
    if not row["served"]:
        return _because(job_id, WaitReason.NO_WORKER, row["queue"], ahead)
    return _because(job_id, WaitReason.ORDER, None, {**ahead, "others": row["others"]})


def _waits_elsewhere(job_id: UUID, state: JobState, row: Row) -> Explanation:
    """Explain a job that no claim and no gate meets, or will not soon: its batch is paused."""
    if row["held"] is not None and state is not JobState.RUNNING:
        facts = {"paused_reason": row["paused_reason"]}
        return Explanation(job_id, state, WaitReason.BATCH_PAUSED, str(row["held"]), facts=facts)
    reason = WaitReason.FINAL if state.final else WaitReason(state.value)
    until = row["run_at"] if state in (JobState.SCHEDULED, JobState.PARKED) else None
    return Explanation(job_id, state, reason, row["parked_on"], until=until)


async def eligible_jobs(database: Database, queue: str, at_most: int, levels: Mapping[str, Level] | None) -> Eligible:
    """Count what could start of a queue, and say what holds the rest."""
    row = await database.fetch_one("eligible_jobs", queue=queue, at_most=at_most, levels=_levels(levels))
    assert row is not None
    held_by = WaitReason.PAUSED.value if row["paused"] else row["held_by"]
    room = None if row["room"] is None else int(row["room"])
    return Eligible(row["jobs"], room, held_by, row["workers"], row["units"])


def _levels(levels: Mapping[str, Level] | None) -> str | None:
    if levels is None:
        return None
    closed = {name: f"{level.closed.total_seconds():.6f}" for name, level in levels.items()}
    return json.dumps({name: {"units": level.units, "closed": closed[name]} for name, level in levels.items()})


def _because(
    job_id: UUID, reason: WaitReason, subject: str | None, facts: Mapping[str, Any] | None = None
) -> Explanation:
    return Explanation(job_id, JobState.READY, reason, subject, facts=facts or {})


def _facts(found: Row) -> dict[str, Any]:
    """Return the numbers of an obstacle."""
    if found["kind"] == "breaker":
        return {"state": found["breaker"]}
    if found["kind"] == "rate":
        return {"level": found["room"], "units": found["units"]}
    facts = {"cap": found["cap"], "running": int(found["cap"] - found["room"])}
    return facts if found["held_by"] is None else {**facts, "held_by": str(found["held_by"])}
