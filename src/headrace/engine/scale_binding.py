"""What binds a queue beyond its slots: the quota of a model, a budget, a breaker.

The gate tells of breakers and of pools that tasks declare. Calls of other tasks wait in their slots, or leave them; of
these the processes tell that make them, with their heartbeats. A call does not name its queue, so what a process waits
for binds every queue that its worker serves; what a farm's processes wait for, every queue whose handlers run there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from headrace.engine.llm_queries import POOLS
from headrace.engine.loops.resizer import QUOTA
from headrace.engine.refusals import REFUSALS, Refusal
from headrace.engine.telemetry import SLOTS
from headrace.model.budget import BudgetView
from headrace.model.calls import DAY
from headrace.model.elastic import Eligible
from headrace.model.quota import pool_gate
from headrace.model.scale_values import ANY_MODEL, Binding, ScaleReason
from headrace.model.session import SessionView

Stats = Mapping[str, Any]


class Callers:
    """Live processes that call models, and for which queues they may do it."""

    def __init__(self, sessions: Iterable[SessionView], budgets: Iterable[BudgetView]) -> None:
        live = [session for session in sessions if session.alive]
        self._workers = [session for session in live if session.queues]
        self._callers = [session for session in live if not session.queues]
        self._budgets = [budget for budget in budgets if budget.budget is not None]

    def binding(self, queue: str, eligible: Eligible, *, farmed: bool) -> Binding | None:
        """Return what binds a queue, the gate before a budget and that before a quota; `farmed`: it runs elsewhere."""
        if (held := of_gate(eligible.held_by)) is not None:
            return held
        serving = [worker for worker in self._workers if queue in worker.queues]
        told = list(self._told(serving, farmed=farmed))
        if scopes := sorted(self._empty(told)):
            return Binding(ScaleReason.BUDGET, scopes[0])
        if pools := sorted(_short(told)):
            return Binding(ScaleReason.QUOTA, pools[0])
        rows = (worker.stats.get(SLOTS, {}).get(queue, {}) for worker in serving)
        if any(row.get("held_by") == QUOTA for row in rows):
            return Binding(ScaleReason.QUOTA, ANY_MODEL)
        return None

    def _told(self, serving: Sequence[SessionView], *, farmed: bool) -> Iterator[Stats]:
        """Yield what the processes tell that may call models for the workers of a queue."""
        own = {worker.process for worker in serving}
        others = {worker.process for worker in self._workers}
        for caller in self._callers:
            if caller.process in own or (farmed and serving and caller.process not in others):
                yield caller.stats

    def _empty(self, told: Sequence[Stats]) -> Iterator[str]:
        """Yield the scopes whose budgets refuse calls: that of the day to all, others to those that asked lately."""
        calls = any(stats.get(POOLS) for stats in told)
        asked = [(scope, Refusal(**row)) for stats in told for scope, row in stats.get(REFUSALS, {}).items()]
        for budget in self._budgets:
            if budget.scope == DAY and calls and budget.is_used_up:
                yield DAY
            # A budget that was raised since has room for it now.
            if any(
                scope == budget.scope and not last.fits(tokens=budget.left_tokens, cost_nano=budget.left_nano)
                for scope, last in asked
            ):
                yield budget.scope


def of_gate(held_by: str | None) -> Binding | None:
    """Return the breaker or the pool that holds jobs at the gate; None for caps and rate limits.

    >>> of_gate("rate jobs:openai:gpt-x")
    Binding(kind=<ScaleReason.QUOTA: 'quota'>, name='openai:gpt-x')
    """
    kind, _, name = (held_by or "").partition(" ")
    if kind == "breaker":
        return Binding(ScaleReason.BREAKER, name)
    if kind == "rate" and name.startswith(pool_gate("")):
        return Binding(ScaleReason.QUOTA, name.removeprefix(pool_gate("")))
    return None


def _short(told: Sequence[Stats]) -> Iterator[str]:
    """Yield the pools that are closed, or that calls wait for."""
    for stats in told:
        for pool in stats.get(POOLS, ()):
            if pool["waiting"] or pool["closed_seconds"] > 0:
                yield pool["name"]
