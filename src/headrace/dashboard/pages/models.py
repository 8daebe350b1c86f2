"""Models: quotas and who waits for them, what calls cost, what was not bought twice, budgets, and orphaned calls.

It is looked at again and again, so that it writes nothing: what dead processes left is ended by workers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from headrace.dashboard.asking import choice
from headrace.dashboard.page import Context, Page, View
from headrace.dashboard.words import word
from headrace.engine.llm_queries import BudgetStanding, PoolView, budgets_now, pools_now, saved_by, spend_now
from headrace.model.budget import BudgetState
from headrace.model.calls import CallState
from headrace.model.durations import parse_duration
from headrace.model.money import to_dollars
from headrace.model.quota import Dimension
from headrace.model.spend import SpendGroup

#: Rows of each table.
MOST = 50
#: What was used is told per minute, from the looks of so much time.
WITHIN = timedelta(minutes=1)
#: Times that spending is told of; any other may stand in the address.
SINCE, ALL = ("1d", "7d", "30d"), "all"
GROUPS = {
    SpendGroup.POOL: word("pool"), SpendGroup.MODEL: word("model"), SpendGroup.BATCH: word("batch"),
    SpendGroup.RUN: word("run"), SpendGroup.TENANT: word("tenant"), SpendGroup.DAY: word("day"),
    SpendGroup.PURPOSE: word("purpose"),
}  # fmt: skip
#: Where no limits are known a pace is learnt, in calls.
PACE = "pace"
_FLOWS: dict[str, str] = {
    Dimension.REQUESTS: word("requests per minute"), Dimension.TOKENS: word("tokens per minute"),
    Dimension.INPUT_TOKENS: word("input tokens per minute"), Dimension.OUTPUT_TOKENS: word("output tokens per minute"),
    PACE: word("calls per minute, as was learnt"),
}  # fmt: skip
#: Worst first.
STATES = {BudgetState.USED_UP: word("used up"), BudgetState.FULL: word("full"), BudgetState.OPEN: word("calls pass")}


@dataclass(frozen=True, slots=True)
class Use:
    """What passes one limit of a pool: `used` of `of`, in words that are translated; None: not known yet."""

    name: str
    used: float | None
    of: float


async def models(view: View) -> Context:
    """Return what the page shows."""
    stores = view.app.runtime.stores
    by, since = choice(view, "by", SpendGroup) or SpendGroup.MODEL, view.query.get("since", "").strip() or "7d"
    lasts = None if since == ALL else parse_duration(since, field="since")
    info, sessions = await asyncio.gather(stores.inspect.store_info(), stores.inspect.list_sessions())
    pools, budgets, spend, orphans = await asyncio.gather(
        pools_now(stores, view.app.settings.pools(), sessions=sessions, now=info.now),
        view.answer("budgets", lambda: budgets_now(stores, sessions=sessions), seconds=1),
        view.answer(f"spend {by} {since}", lambda: spend_now(stores, by, since=lasts, limit=MOST + 1), seconds=5),
        stores.budgets.list_calls(state=CallState.ORPHANED, limit=MOST + 1),
    )
    now = info.now or view.now
    budgets = sorted(budgets, key=lambda standing: (list(STATES).index(standing.state), standing.view.scope))
    return {
        "now": now,
        "pools": [(pool, _uses(view, pool, now), _mean_wait(pool), _slowed(pool)) for pool in pools[:MOST]],
        "more_pools": len(pools) - MOST,
        "saved": saved_by(sessions),
        "budgets": budgets[:MOST],
        "states": STATES,
        "more_budgets": len(budgets) - MOST,
        "given": {standing.view.scope: _given(standing) for standing in budgets[:MOST]},
        "by": by, "since": since, "groups": GROUPS, "times": _times(since),
        "spend": spend[:MOST], "more_spend": len(spend) > MOST,
        "orphans": orphans[:MOST], "more_orphans": len(orphans) > MOST,
    }  # fmt: skip


def _times(since: str) -> Sequence[str]:
    return (*SINCE, ALL) if since in (*SINCE, ALL) else (since, *SINCE, ALL)


def _mean_wait(pool: PoolView) -> timedelta | None:
    return pool.waited / pool.waits if pool.waits else None


def _slowed(pool: PoolView) -> float | None:
    """Return to which part of its limits a pool was slowed down; None: it was not, or has none that are known."""
    return pool.learnt if pool.learnt < 1 and PACE not in pool.flows else None


def _uses(view: View, pool: PoolView, now: datetime) -> list[Use]:
    """Return how much of each limit is used: of flows per minute, of the day, at once."""
    flows = pool.flows or ({} if pool.limits is None else {str(name): flow for name, flow in pool.limits.flows.items()})
    names = sorted(flows)
    history = view.history(f"pool {pool.name} {' '.join(names)}")
    history.note(now, [pool.used.get(name, 0.0) for name in names])
    found = []
    for place, name in enumerate(names):
        grown = history.per_second(place, WITHIN) if pool.processes else 0.0
        found.append(Use(_FLOWS[name], None if grown is None else grown * 60, flows[name] * 60))
    limits = pool.limits
    if limits is not None and limits.requests_per_day is not None:
        made = 0 if pool.today is None else pool.today.usage.calls + pool.today.in_flight
        found.append(Use(word("requests per day"), made, limits.requests_per_day))
    if limits is not None and limits.concurrency is not None:
        found.append(Use(word("calls at once"), pool.in_flight, limits.concurrency))
    return found


def _given(standing: BudgetStanding) -> dict[str, object]:
    """Return what the fields of the dialog begin with that changes a budget."""
    budget = standing.view.budget
    if budget is None:
        return {"scope": standing.view.scope}
    dollars = "" if budget.cost_nano is None else f"{to_dollars(budget.cost_nano):f}"
    return {"scope": standing.view.scope, "dollars": dollars, "tokens": "" if budget.tokens is None else budget.tokens}


PAGES = (
    Page("models", "/models", models, title="Models", group="System", query=frozenset({"by", "since"}), every=2.0),
)
