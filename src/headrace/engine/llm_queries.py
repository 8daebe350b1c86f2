"""What command line and HTTP service show of model calls: pools as they stand, and what was spent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

from headrace.engine.dead_processes import expire_gone
from headrace.engine.refusals import REFUSALS, Refusal
from headrace.model.budget import BudgetState, BudgetView
from headrace.model.calls import CallState, CallView
from headrace.model.quota import Pool, PoolLimits
from headrace.model.session import SessionView
from headrace.model.spend import SpendGroup, SpendRow
from headrace.ports.inspect import Inspect
from headrace.ports.stores import Stores

#: Under this name a session tells of its pools.
POOLS = "headrace.llm.pools"
_HITS = ("headrace.llm.memo_hits", "headrace.llm.shared")
_SAVED = "headrace.llm.saved_nano"
#: Groups that spending is told of, the dearest.
MOST_SPEND = 1_000
#: Calls that one look at the ledger ends, of processes that are gone.
_REAPED = 1_000


@dataclass(slots=True)
class PoolView:
    """One pool over all live processes. Counts of processes are since each began."""

    name: str
    #: what the settings of whoever looks give; None: nothing
    limits: PoolLimits | None = None
    #: live processes that tell of it
    processes: int = 0
    #: calls in flight by the ledger, and by what the processes say
    in_flight: int = 0
    waiting: int = 0
    #: calls that had to wait, and how long together
    waits: int = 0
    waited: timedelta = timedelta()
    #: 429s
    refused: int = 0
    overloaded: int = 0
    #: for how much longer nothing passes
    closed: timedelta = timedelta()
    #: units per second that flow, by dimension, where the limits are known or learnt
    flows: dict[str, float] = field(default_factory=dict)
    #: units that passed, by dimension, since each process began
    used: dict[str, float] = field(default_factory=dict)
    #: the flow as a part of what the limits allow
    learnt: float = 1.0
    #: today's calls and spending (UTC); None: nothing was called
    today: SpendRow | None = None


async def list_pools(stores: Stores, configured: Iterable[Pool] = ()) -> list[PoolView]:
    """Return the pools that were used today or by a live process, and those `configured` with limits, by name."""
    await settle_dead(stores)
    info, sessions = await stores.inspect.store_info(), await stores.inspect.list_sessions()
    return await pools_now(stores, configured, sessions=sessions, now=info.now)


async def pools_now(
    stores: Stores, configured: Iterable[Pool] = (), *, sessions: Sequence[SessionView], now: datetime | None
) -> list[PoolView]:
    """Return what `list_pools` does of sessions without ending what dead processes left: it writes nothing."""
    rows = await stores.budgets.list_spend(SpendGroup.POOL, since=_day(now))
    pools = {row.name: PoolView(row.name, in_flight=row.in_flight, today=row) for row in rows}
    for view in told_pools(sessions, pools):
        pools.setdefault(view.name, view)
    for pool in configured:
        if pool.limits.given:
            pools.setdefault(pool.name, PoolView(pool.name)).limits = pool.limits
    return [pools[name] for name in sorted(pools)]


def told_pools(sessions: Iterable[SessionView], pools: dict[str, PoolView] | None = None) -> list[PoolView]:
    """Return pools by what live processes told with their last heartbeats, added to those that are known."""
    found = {} if pools is None else dict(pools)
    for told in _told(sessions):
        _add(found.setdefault(told["name"], PoolView(told["name"])), told)
    return list(found.values())


async def look_at_pool(inspect: Inspect, name: str) -> PoolView:
    """Return one pool by what live processes told with their last heartbeats: one cheap look, without the ledger."""
    pool = PoolView(name)
    for told in _told(await inspect.list_sessions()):
        if told["name"] == name:
            _add(pool, told)
            pool.in_flight += told["in_flight"]
    return pool


@dataclass(frozen=True, slots=True)
class ModelFigures:
    """What Prometheus is told of model calls."""

    pools: list[PoolView]
    #: today's calls by purpose (UTC)
    purposes: list[SpendRow]
    #: asks of live processes that cost nothing: their answers were stored, or an equal call was under way
    memo_hits: int


async def read_figures(stores: Stores) -> ModelFigures:
    """Return the figures of model calls."""
    await settle_dead(stores)
    info, sessions = await stores.inspect.store_info(), await stores.inspect.list_sessions()
    pools = await pools_now(stores, sessions=sessions, now=info.now)
    live = (session.stats for session in sessions if session.alive)
    hits = sum(stats.get(name, 0) for stats in live for name in _HITS)
    return ModelFigures(pools, await stores.budgets.list_spend(SpendGroup.PURPOSE, since=_day(info.now)), hits)


async def list_spend(stores: Stores, by: SpendGroup, *, since: timedelta | None) -> list[SpendRow]:
    """Return what was spent, dearest first; `since`: only of so much time, in whole days (UTC)."""
    await settle_dead(stores)
    return await spend_now(stores, by, since=since)


async def spend_now(
    stores: Stores, by: SpendGroup, *, since: timedelta | None, limit: int = MOST_SPEND
) -> list[SpendRow]:
    """Return what `list_spend` does without ending what dead processes left: it writes nothing."""
    if since is None:
        return await stores.budgets.list_spend(by, limit=limit)
    info = await stores.inspect.store_info()
    return await stores.budgets.list_spend(by, since=_day(info.now, since), limit=limit)


async def list_calls(
    stores: Stores, *, state: CallState | None, pool: str | None, job: UUID | None = None, limit: int
) -> list[CallView]:
    """Return calls of the ledger, newest first, those of dead processes as they ended."""
    await settle_dead(stores)
    return await stores.budgets.list_calls(state=state, pool=pool, job=job, limit=limit)


@dataclass(frozen=True, slots=True)
class Saved:
    """What live processes did not have to buy, since each began."""

    #: asks whose answer was stored, and those that shared an equal one under way
    stored: int
    shared: int
    #: what these answers cost when they were bought, in nanodollars, where that is known
    nano: int


def saved_by(sessions: Iterable[SessionView]) -> Saved:
    """Return what live processes told with their last heartbeats of answers that were used again."""
    live = [session.stats for session in sessions if session.alive]
    return Saved(*(sum(stats.get(name, 0) for stats in live) for name in (*_HITS, _SAVED)))


@dataclass(frozen=True, slots=True)
class BudgetStanding:
    """A budget, and whether calls pass it."""

    view: BudgetView
    state: BudgetState
    #: the call that it had no room for last, of a live process and of the last minute; None: none
    refused: Refusal | None


async def list_budgets(stores: Stores) -> list[BudgetStanding]:
    """Return the budgets that are set, by scope, each with its state."""
    await settle_dead(stores)
    return await budgets_now(stores)


async def budgets_now(
    stores: Stores, scopes: Sequence[str] | None = None, *, sessions: Sequence[SessionView] | None = None
) -> list[BudgetStanding]:
    """Return budgets without ending what dead processes left; with `scopes` those, also where none is set.

    `sessions`: those that were read already.
    """
    refused = {
        scope: Refusal(told["tokens"], told["cost_nano"])
        for session in (await stores.inspect.list_sessions() if sessions is None else sessions)
        if session.alive
        for scope, told in session.stats.get(REFUSALS, {}).items()
    }
    return [_standing(view, refused.get(view.scope)) for view in await stores.budgets.list_budgets(scopes)]


def budget_document(standing: BudgetStanding) -> dict[str, Any]:
    """Return a budget as one document."""
    view, refused = standing.view, standing.refused
    left = {"left_nano": view.left_nano, "left_tokens": view.left_tokens}
    return {**asdict(view), "state": standing.state, **left, "refused": refused and asdict(refused)}


def _standing(view: BudgetView, refused: Refusal | None) -> BudgetStanding:
    # A budget that was raised since has room for it now.
    if refused is not None and refused.fits(tokens=view.left_tokens, cost_nano=view.left_nano):
        refused = None
    if view.is_used_up:
        return BudgetStanding(view, BudgetState.USED_UP, refused)
    is_full = refused is not None or 0 in (view.left_tokens, view.left_nano)
    return BudgetStanding(view, BudgetState.FULL if is_full else BudgetState.OPEN, refused)


async def settle_dead(stores: Stores) -> None:
    """End what dead processes left in the ledger, so that it is told as it is."""
    await expire_gone(stores)
    while await stores.calls.reap_calls(limit=_REAPED) >= _REAPED:
        pass


def _day(now: datetime | None, before: timedelta = timedelta()) -> date | None:
    return None if now is None else (now - before).date()


def _told(sessions: Iterable[SessionView]) -> Iterable[dict[str, Any]]:
    return (pool for session in sessions if session.alive for pool in session.stats.get(POOLS, ()))


def _add(pool: PoolView, told: dict[str, Any]) -> None:
    pool.processes += 1
    pool.waiting += told["waiting"]
    pool.waits += told["waits"]
    pool.waited += timedelta(seconds=told["waited_seconds"])
    pool.refused += told["refused"]
    pool.overloaded += told["overloaded"]
    pool.closed = max(pool.closed, timedelta(seconds=told["closed_seconds"]))
    pool.flows = dict(told["flows"])
    for name, units in told["used"].items():
        pool.used[name] = pool.used.get(name, 0.0) + units
    pool.learnt = min(pool.learnt, told["learnt"])
