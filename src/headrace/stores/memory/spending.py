"""Budgets held against what is spent and reserved, and the sums of reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date

from headrace.model.budget import Budget, BudgetView
from headrace.model.calls import DAY, NewCall
from headrace.model.spend import SpendGroup, SpendRow
from headrace.stores.memory.ledger import Ledger, Sums, most


def refusing_scope(ledger: Ledger, new: NewCall, today: date) -> str | None:
    """Return the first scope whose budget has no room for a call; None: all have."""
    own = most(new.estimate)
    for scope in new.origin.scopes:
        budget = ledger.budgets.get(scope)
        if budget is None:
            continue
        taken = ledger.used(scope, today) + ledger.reserved(scope, today) + own
        if not _within(budget, taken.cost_nano, taken.tokens):
            return scope
    return None


def _within(budget: Budget, cost_nano: int, tokens: int) -> bool:
    return (budget.cost_nano is None or cost_nano <= budget.cost_nano) and (
        budget.tokens is None or tokens <= budget.tokens
    )


def view_budget(ledger: Ledger, scope: str, today: date) -> BudgetView:
    """Return a scope's budget as it stands."""
    used, reserved = ledger.used(scope, today), ledger.reserved(scope, today)
    return BudgetView(
        scope=scope,
        budget=ledger.budgets.get(scope),
        cost_nano=used.cost_nano,
        tokens=used.tokens,
        reserved_nano=reserved.cost_nano,
        reserved_tokens=reserved.tokens,
        unpriced=used.unpriced,
    )


@dataclass(slots=True)
class _Group:
    sums: Sums = field(default_factory=Sums)
    in_flight: int = 0
    errors: Counter[str] = field(default_factory=Counter)

    def add(self, error: str, sums: Sums) -> None:
        self.sums.settled += sums.settled
        self.sums.orphaned += sums.orphaned
        self.sums.usage += sums.usage
        self.sums.lost += sums.lost
        if error and sums.settled + sums.orphaned:
            self.errors[error] += sums.settled + sums.orphaned


def sum_spend(ledger: Ledger, by: SpendGroup, since: date | None) -> list[SpendRow]:
    """Return each group's sum, dearest first."""
    groups: dict[str, _Group] = {}
    for scope, days in ledger.spent.items():
        for (day, error), sums in days.items():
            if (since is None or day >= since) and (name := _name(by, scope, day)) is not None:
                groups.setdefault(name, _Group()).add(error, sums)
    for name in _live_names(ledger, by, since):
        groups.setdefault(name, _Group()).in_flight += 1
    rows = [_row(name, group) for name, group in groups.items()]
    return sorted(rows, key=lambda row: (-row.usage.cost_nano - row.orphaned_nano, row.name))


def _live_names(ledger: Ledger, by: SpendGroup, since: date | None) -> Iterator[str]:
    for call in ledger.live.values():
        if since is None or call.day >= since:
            names = (_name(by, scope, call.day) for scope in call.new.scopes)
            yield from (name for name in names if name is not None)


def _name(by: SpendGroup, scope: str, day: date) -> str | None:
    """Return the name of the group that a scope's sum belongs to; None: to none of these groups."""
    if by is SpendGroup.DAY:
        return day.isoformat() if scope == DAY else None
    kind, _, name = scope.partition(":")
    return name if kind == by else None


def _row(name: str, group: _Group) -> SpendRow:
    return SpendRow(
        name=name,
        usage=group.sums.usage,
        in_flight=group.in_flight,
        orphaned=group.sums.orphaned,
        orphaned_nano=group.sums.lost.cost_nano,
        orphaned_unpriced=group.sums.lost.unpriced,
        errors=dict(group.errors),
    )
