"""The overview: jobs by state, what flows, how long it takes, and what needs attention first."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from headrace.dashboard.attention import Facts, notes_of
from headrace.dashboard.page import Context, Page, View
from headrace.engine.llm_queries import told_pools
from headrace.engine.worker_queries import list_workers
from headrace.model.dead_letter import DeadLetter
from headrace.model.event import OutboxStats
from headrace.model.job import JobState, JobView
from headrace.model.stats import QueueStats
from headrace.ports.stores import Stores

#: Dead letters of so much time are told, from so many that are looked at.
RECENT, LOOKED_AT = timedelta(days=1), 200
#: Jobs that succeeded lately, from which times are taken.
SAMPLE = 200
STATES = ("scheduled", "ready", "running", "parked", "succeeded", "failed", "cancelled")


async def overview(view: View) -> Context:
    """Return what the overview shows; nothing of it counts a table."""
    stores = view.app.runtime.stores
    queues, letters, done, (now, workers), limits = await asyncio.gather(
        view.answer("queues", stores.inspect.queue_stats, seconds=0.5),
        view.answer("letters", lambda: _letters(stores), seconds=2),
        view.answer("sample", lambda: _sample(stores), seconds=2),
        list_workers(stores),
        _limits(stores),
    )
    totals = {state: sum(getattr(queue, state) for queue in queues) for state in STATES}
    rates = sum(queue.rate_in for queue in queues), sum(queue.rate_out for queue in queues)
    view.history("overview").note(now or view.now, (*rates, float(totals["ready"]), float(totals["running"])))
    return {
        "now": now or view.now,
        "totals": totals,
        "estimated": any(set(STATES) & set(queue.estimated) for queue in queues),
        "rates": rates,
        "lines": [view.history("overview").line(place) for place in range(4)],
        "oldest": _oldest(queues),
        "times": _times(done),
        "queues": sorted(queues, key=lambda queue: (-queue.ready - queue.running, queue.name)),
        "workers": workers,
        "slots": sum(sum(worker.queues.values()) for worker in workers),
        "letters": letters,
        "notes": notes_of(replace(limits, queues=queues, letters=letters)),
    }


async def _letters(stores: Stores) -> Sequence[DeadLetter]:
    page = await stores.inspect.dead_letters(within=RECENT, limit=LOOKED_AT)
    return page.letters


async def _sample(stores: Stores) -> Sequence[JobView]:
    return await stores.inspect.list_jobs(state=JobState.SUCCEEDED, limit=SAMPLE, brief=True)


async def _limits(stores: Stores) -> Facts:
    limits, sessions, budgets, outbox = await asyncio.gather(
        stores.admission.list_limits(most_shares=0),
        stores.inspect.list_sessions(),
        stores.budgets.list_budgets(),
        _outbox(stores),
    )
    closed = [(pool.name, pool.closed) for pool in told_pools(sessions) if pool.closed]
    return Facts(breakers=limits.breakers, closed_pools=closed, budgets=budgets, outbox=outbox)


async def _outbox(stores: Stores) -> OutboxStats | None:
    return None if stores.events is None else await stores.events.outbox.outbox_stats()


def _oldest(queues: Sequence[QueueStats]) -> QueueStats | None:
    """Return the queue whose oldest ready job waits longest."""
    waiting = [queue for queue in queues if queue.oldest_ready_age is not None]
    return max(waiting, key=lambda queue: queue.oldest_ready_age or timedelta(), default=None)


def _times(done: Sequence[JobView]) -> dict[str, timedelta | None]:
    """Return how long jobs that succeeded lately waited and ran: in the middle, and of which 5 % took longer."""
    ran = [job.finished_at - job.started_at for job in done if job.finished_at and job.started_at]
    waited = [job.started_at - max(job.created_at, job.run_at or job.created_at) for job in done if job.started_at]
    return {
        "wait_50": _percentile(waited, 0.5), "wait_95": _percentile(waited, 0.95),
        "run_50": _percentile(ran, 0.5), "run_95": _percentile(ran, 0.95),
    }  # fmt: skip


def _percentile(values: Sequence[timedelta], part: float) -> timedelta | None:
    """Return the value that a part of all do not exceed; None of none."""
    return sorted(values)[min(int(part * len(values)), len(values) - 1)] if values else None


PAGES = (Page("overview", "/", overview, title="Overview"),)
