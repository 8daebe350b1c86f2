"""`headrace llm`: quotas of models, what was spent, calls that may have been paid for nothing, budgets."""

from __future__ import annotations

import shlex
from datetime import timedelta
from typing import Any
from uuid import UUID

import click

from headrace.app import App
from headrace.cli.opening import with_app, with_stores
from headrace.cli.output import age, json_option, print_json, print_table, print_text
from headrace.cli.tables import Give
from headrace.cli.values import DurationType, IdType, WholeType
from headrace.engine.llm_exposition import expose_models
from headrace.engine.llm_queries import (
    BudgetStanding,
    PoolView,
    budget_document,
    list_calls,
    list_pools,
    list_spend,
    read_figures,
)
from headrace.engine.llm_queries import list_budgets as list_standings
from headrace.model.budget import Budget, BudgetView
from headrace.model.calls import CallState, CallView
from headrace.model.money import show_money
from headrace.model.quota import PoolLimits
from headrace.model.spend import SpendGroup, SpendRow

_SCOPE = click.argument("scope", metavar="SCOPE")
_SCOPES = 'SCOPE is "day", "tenant:NAME", "batch:ID" or "run:ID".'


@click.group()
def llm() -> None:
    """Model calls: quotas, spending, orphaned calls and budgets."""


@llm.command()
@click.option("--prometheus", is_flag=True, show_default=False, help="Write the text format of Prometheus.")
@json_option
def pools(prometheus: bool, as_json: bool) -> None:
    """Show the quotas of models: what flows, who waits, what was refused, what was spent today (UTC).

    A pool is one quota: of a provider, an account there, and a model. WAITS, 429 and FLOW are told by the processes
    that are alive, since each began; FLOW is per minute, and less than the limit where less was learnt. Of a pool that
    no live process uses it is the limit that is configured here.

    \b
    Examples:
      headrace llm pools
      headrace llm pools --json
      headrace llm pools --prometheus
    """
    if prometheus and as_json:
        raise click.UsageError("--json and --prometheus exclude each other")
    if prometheus:
        click.echo(expose_models(with_stores(read_figures)), nl=False)
        return
    found = with_app(lambda app: list_pools(app.runtime.stores, app.settings.pools()))
    if as_json:
        print_json(found)
    elif not found:
        print_text("No model was called today, no live process uses one, and no limits are configured.")
    else:
        print_table(_POOL_COLUMNS, [_pool_row(pool) for pool in found], _POOLS_GIVE)


_POOL_COLUMNS = (
    "POOL", "STATE", "IN FLIGHT", "WAITING", "WAITS", "WAITED", "429", "FLOW/MIN", "CALLS TODAY", "TOKENS", "SPENT",
    "ORPHANED",
)  # fmt: skip
_POOLS_GIVE = Give(first=("WAITED", "WAITS", "TOKENS", "ORPHANED", "CALLS TODAY", "IN FLIGHT"))


def _pool_row(pool: PoolView) -> tuple[object, ...]:
    today = pool.today
    return (
        pool.name,
        f"closed for {age(pool.closed)}" if pool.closed else "open",
        pool.in_flight,
        pool.waiting,
        pool.waits,
        age(pool.waited) if pool.waits else "",
        pool.refused,
        _flow(pool),
        today.usage.calls if today else 0,
        today.usage.tokens if today else 0,
        _spent(today) if today else "$0.00",
        today.orphaned if today else 0,
    )


def _flow(pool: PoolView) -> str:
    """Return what flows, as live processes know it or else as it is configured, and the limits that do not flow."""
    limits = pool.limits or PoolLimits()
    flows = pool.flows if pool.processes else {str(name): flow for name, flow in limits.flows.items()}
    words = [f"{60 * flow:,.0f} {name.replace('_', ' ')}" for name, flow in sorted(flows.items())]
    if limits.requests_per_day is not None:
        words.append(f"{limits.requests_per_day:,} requests/day")
    if limits.concurrency is not None:
        words.append(f"{limits.concurrency:,} at once")
    if pool.processes:
        return ", ".join(words) or "not limited"
    return f"limit {', '.join(words)}" if words else "no limit configured"


def _spent(row: SpendRow) -> str:
    """Return money as people read it; what is not known is said."""
    known = show_money(row.usage.cost_nano)
    if not row.usage.unpriced:
        return known
    return "unknown" if row.usage.unpriced == row.usage.calls else f"{known} + unknown"


@llm.command()
@click.option(
    "--by", type=click.Choice([group.value for group in SpendGroup]), default="model", help="What is added up."
)
@click.option("--since", type=DurationType(), show_default=False, help="Only the last days: 1d, 7d; default: all kept.")
@json_option
def spend(by: str, since: timedelta | None, as_json: bool) -> None:
    """Show what model calls cost: tokens and money, and what orphaned calls may have cost at most.

    An orphaned call was sent by a process that died, or timed out: nobody knows whether it was paid. A price that is
    not known is shown as unknown, never as 0.

    \b
    Examples:
      headrace llm spend
      headrace llm spend --by batch --since 7d
      headrace llm spend --by day --json
    """
    rows = with_stores(lambda stores: list_spend(stores, SpendGroup(by), since=since))
    if as_json:
        print_json(rows)
    elif not rows:
        print_text("Nothing was spent: no model call is on record.")
    else:
        print_table((by.upper(), *_SPEND_COLUMNS), [_spend_row(row) for row in rows], _SPEND_GIVE)
        _print_orphans(rows)


_SPEND_COLUMNS = (
    "CALLS",
    "INPUT TOKENS",
    "CACHED",
    "OUTPUT TOKENS",
    "SPENT",
    "IN FLIGHT",
    "ORPHANED",
    "AT MOST",
    "ERRORS",
)
_SPEND_GIVE = Give(first=("CACHED", "ERRORS", "IN FLIGHT", "INPUT TOKENS", "OUTPUT TOKENS"), lists=("ERRORS",))


def _spend_row(row: SpendRow) -> tuple[object, ...]:
    usage = row.usage
    most = show_money(None if row.orphaned_unpriced else row.orphaned_nano) if row.orphaned else ""
    errors = ", ".join(f"{name}:{count}" for name, count in sorted(row.errors.items()))
    return (
        row.name, usage.calls, usage.input_tokens, usage.cached_tokens, usage.output_tokens, _spent(row),
        row.in_flight, row.orphaned, most, errors,
    )  # fmt: skip


def _print_orphans(rows: list[SpendRow]) -> None:
    orphaned = sum(row.orphaned for row in rows)
    if orphaned:
        print_text(f"{orphaned} calls may have been paid for nothing: headrace llm calls --state orphaned")


@llm.command()
@click.option(
    "--state", type=click.Choice([state.value for state in CallState]), show_default=False, help="Only calls in it."
)
@click.option("--pool", show_default=False, help="Only calls of this pool.")
@click.option("--job", type=IdType(), show_default=False, help="Only calls of this job.")
@click.option("--limit", type=WholeType("limit", 1, 10_000), default=50, help="Most calls shown, the newest first.")
@json_option
def calls(state: str | None, pool: str | None, job: UUID | None, limit: int, as_json: bool) -> None:
    """List calls of the ledger, newest first: what was sent, how it ended, and what it cost.

    \b
    Examples:
      headrace llm calls --state orphaned
      headrace llm calls --pool openai:gpt-x --limit 20 --json
      headrace llm calls --job 01980000-0000-7000-8000-000000000000
    """

    chosen = None if state is None else CallState(state)
    found = with_stores(lambda stores: list_calls(stores, state=chosen, pool=pool, job=job, limit=limit))
    if as_json:
        print_json(found)
    elif not found:
        print_text("No such call is on record.")
    else:
        print_table(_CALL_COLUMNS, [_call_row(call) for call in found], _CALLS_GIVE)


_CALL_COLUMNS = ("CALL", "STATE", "POOL", "MODEL", "FOR", "OPENED", "TOKENS", "COST", "ERROR", "JOB", "REQUEST")
_CALLS_GIVE = Give(first=("REQUEST", "JOB", "FOR", "MODEL", "TOKENS", "OPENED"))


def _call_row(call: CallView) -> tuple[object, ...]:
    cost = call.usage.cost if call.usage.calls else 0
    at_most = "≤ " if call.state is CallState.ORPHANED and cost is not None else ""
    return (
        str(call.id), call.state, call.pool, call.model, call.purpose, call.opened_at, call.usage.tokens,
        at_most + show_money(cost), call.error, "" if call.origin.job_id is None else str(call.origin.job_id),
        call.request_id or "",
    )  # fmt: skip


@llm.group()
def budget() -> None:
    """How much model calls may cost. At its limit work pauses; raise it, and work goes on."""


@budget.command("list")
@json_option
def list_budgets(as_json: bool) -> None:
    """List budgets, what is spent of them, and what calls in flight may use at most.

    STATE is "open": calls pass; "full": what is left is less than a call asks for that waits (of the last minute), or
    all that is left is reserved by calls in flight; "used up": what is spent has reached a limit. LEFT is what is
    neither spent nor reserved. A call takes of it, before it is made, its prompt and the most that its answer may take.

    \b
    Examples:
      headrace llm budget list
      headrace llm budget list --json
    """
    found = with_stores(list_standings)
    if as_json:
        print_json([budget_document(standing) for standing in found])
    elif not found:
        print_text("No budget is set. Set one with: headrace llm budget set day --dollars 20")
    else:
        print_table(_BUDGET_COLUMNS, [_budget_row(standing) for standing in found], Give(first=("RESERVED",)))
        for standing in found:
            _print_refused(standing)


_BUDGET_COLUMNS = ("SCOPE", "STATE", "SPENT", "RESERVED", "LEFT", "OF", "TOKENS", "TOKENS LEFT", "OF TOKENS")


def _budget_row(standing: BudgetStanding) -> tuple[object, ...]:
    view = standing.view
    limits = view.budget or Budget()
    unknown = f" + {view.unpriced} calls of unknown price" if view.unpriced else ""
    return (
        view.scope, standing.state, show_money(view.cost_nano) + unknown, show_money(view.reserved_nano),
        "" if view.left_nano is None else show_money(view.left_nano),
        "" if limits.cost_nano is None else show_money(limits.cost_nano), view.tokens,
        "" if view.left_tokens is None else view.left_tokens, "" if limits.tokens is None else limits.tokens,
    )  # fmt: skip


def _print_refused(standing: BudgetStanding) -> None:
    refused = standing.refused
    if refused is not None:
        asked = "" if refused.cost_nano is None else f" and {show_money(refused.cost_nano)}"
        print_text(
            f"{standing.view.scope}: a call that may take {refused.tokens} tokens{asked} waits for room. Raise the "
            "budget, or give calls a smaller max_tokens."
        )


@budget.command("set")
@_SCOPE
@click.option("--dollars", metavar="USD", show_default=False, help="Most money, such as 2.50; 0 stops.")
@click.option("--tokens", type=WholeType("tokens", 0, 10**15), show_default=False, help="Most tokens; 0 stops.")
@json_option
def set_budget(scope: str, dollars: str | None, tokens: int | None, as_json: bool) -> None:
    """Set a budget in the place of an earlier one; what is spent stays counted.

    SCOPE is "day" (each day anew, UTC), "tenant:NAME", "batch:ID" or "run:ID". Give --dollars, --tokens or both.

    \b
    Examples:
      headrace llm budget set day --dollars 20
      headrace llm budget set tenant:acme --dollars 2.50 --tokens 500000
    """

    if dollars is None and tokens is None:
        raise click.UsageError(
            "how much? Give --dollars, --tokens or both (0 stops); to take the limit away: "
            f"headrace llm budget remove {shlex.quote(scope)}"
        )

    async def change(app: App) -> list[BudgetView]:
        await app.budgets.set(scope, dollars=dollars, tokens=tokens)
        return await app.budgets.show([scope])

    _tell(with_app(change), as_json, f"The budget of {scope} is set.")


@budget.command("remove")
@_SCOPE
@json_option
def remove_budget(scope: str, as_json: bool) -> None:
    """Remove a budget: nothing bounds the scope any more.

    \b
    Examples:
      headrace llm budget remove day
    """

    async def change(app: App) -> list[BudgetView]:
        await app.budgets.remove(scope)
        return await app.budgets.show([scope])

    _tell(with_app(change), as_json, f"The budget of {scope} is removed.")


def _tell(views: list[BudgetView], as_json: bool, text: str) -> None:
    found: Any = views[0] if views else None
    if as_json:
        print_json(found)
    else:
        print_text(text)
