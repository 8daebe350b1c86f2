"""The overview: jobs by state, what flows, how long it takes, and what needs attention first."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from headrace.dashboard.attention import Facts, Failed, notes_of
from headrace.dashboard.page import Context, Page, View
from headrace.engine.dead_letters import count_kinds
from headrace.engine.llm_queries import told_pools
from headrace.engine.worker_queries import serving
from headrace.model.crashes import POISON
from headrace.model.dead_letter import DeadLetterFilter
from headrace.model.event import OutboxStats
from headrace.model.job import JobState, JobView
from headrace.model.ranks import percentile
from headrace.model.stats import QueueStats
from headrace.ports.stores import Stores

#: Dead letters of so much time are told, from the newest so many failed jobs: poison is found behind many others.
RECENT, LOOKED_AT = timedelta(days=1), 2_000
#: A look at so many reads as many of each queue that has some: so many together, unless that leaves less than LEAST.
READ, LEAST = 8_000, 200
#: Jobs that succeeded lately, from which times are taken.
SAMPLE = 200
STATES = ("scheduled", "ready", "running", "parked", "succeeded", "failed", "cancelled")


async def overview(view: View) -> Context:
    """Return what the overview shows; nothing of it counts a table."""
    stores = view.app.runtime.stores
    info, sessions, queues = await asyncio.gather(
        stores.inspect.store_info(),
        stores.inspect.list_sessions(),
        view.answer("queues", stores.inspect.queue_stats, seconds=0.5),
    )
    failed, done, limits, budgets, outbox = await asyncio.gather(
        view.answer("letters", lambda: _failed(stores, look_of(queues)), seconds=5, dear=True),
        view.answer("sample", lambda: _sample(stores), seconds=2),
        view.answer("breakers", lambda: stores.admission.list_limits(most_shares=0), seconds=2),
        view.answer("all budgets", stores.budgets.list_budgets, seconds=2),
        view.answer("outbox", lambda: _outbox(stores), seconds=2),
    )
    now, workers = info.now or view.now, serving(sessions)
    closed = [(pool.name, pool.closed) for pool in told_pools(sessions) if pool.closed]
    facts = Facts(queues, failed, limits.breakers, closed, budgets, outbox)
    totals = {state: sum(getattr(queue, state) for queue in queues) for state in STATES}
    rates = sum(queue.rate_in for queue in queues), sum(queue.rate_out for queue in queues)
    view.history("overview").note(now, (*rates, float(totals["ready"])))
    return {
        "now": now,
        "totals": totals,
        "estimated": any(set(STATES) & set(queue.estimated) for queue in queues),
        "rates": rates,
        "lines": [view.history("overview").line(place) for place in range(3)],
        "oldest": _oldest(queues),
        "times": _times(done),
        "queues": sorted(queues, key=lambda queue: (-queue.ready - queue.running, queue.name)),
        "workers": workers,
        "slots": sum(sum(worker.queues.values()) for worker in workers),
        "notes": notes_of(facts),
    }


def look_of(queues: Sequence[QueueStats]) -> int:
    """Return how many failed jobs are looked at: fewer where many queues have some, so that it costs the same."""
    having = sum(queue.failed > 0 for queue in queues)
    return min(LOOKED_AT, max(LEAST, READ // max(having, 1)))


async def _failed(stores: Stores, look: int) -> Failed:
    kinds, complete = await count_kinds(stores.inspect, DeadLetterFilter(within=RECENT), look=look)
    poison = kinds[POISON.kind]
    return Failed(poison, kinds.total() - poison, complete)


async def _sample(stores: Stores) -> Sequence[JobView]:
    return await stores.inspect.list_jobs(state=JobState.SUCCEEDED, limit=SAMPLE, brief=True)


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
        f"{name}_{part}": percentile(values, part / 100) if values else None
        for name, values in (("wait", waited), ("run", ran))
        for part in (50, 95)
    }


PAGES = (Page("overview", "/", overview, title="Overview"),)
