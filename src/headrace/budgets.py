"""Budgets of model calls: `app.budgets`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from headrace.model.budget import Budget, BudgetView, check_scope
from headrace.model.errors import InvalidInputError
from headrace.model.money import to_nano

if TYPE_CHECKING:
    from headrace.runtime import Runtime

_MOST = 10**15


class Budgets:
    """How much money and how many tokens a day, a tenant, a batch or a run may use.

    At a budget's limit work pauses, and does not fail: jobs leave their slots and look again after 3 to 30 s, so that
    raising the budget lets them go on. Scopes: "day" (each day anew, UTC), "tenant:NAME" (`app.llm.using(tenant=…)`),
    "batch:ID" and "run:ID".

    >>> from headrace import App
    >>> async def main() -> None:
    ...     async with App("memory://") as app:
    ...         await app.budgets.set("tenant:acme", dollars="2.50")
    ...         [view] = await app.budgets.show(["tenant:acme"])
    ...         print(view.budget)
    >>> import asyncio; asyncio.run(main())
    Budget(cost_nano=2500000000, tokens=None)
    """

    def __init__(self, runtime: Callable[[], Runtime]) -> None:
        self._runtime = runtime

    async def set(self, scope: str, *, dollars: Decimal | float | str | None = None, tokens: int | None = None) -> None:
        """Set a scope's budget in the place of an earlier one; what is spent stays counted. 0 stops.

        `dollars`: US dollars; calls whose price is not known do not count against it. `tokens`: prompts and answers
        together. Raises InvalidInputError.
        """
        if dollars is None and tokens is None:
            raise InvalidInputError("budget", "must say dollars= or tokens=; to remove it call remove()", None)
        budget = Budget(None if dollars is None else _money(dollars), _tokens(tokens))
        await self._runtime().stores.budgets.set_budget(check_scope(scope), budget)

    async def remove(self, scope: str) -> None:
        """Remove a scope's budget; one that has none is no error. Raises InvalidInputError."""
        await self._runtime().stores.budgets.set_budget(check_scope(scope), None)

    async def show(self, scopes: Sequence[str] | None = None) -> list[BudgetView]:
        """Return budgets as they stand; with `scopes` those, also where none is set. Raises InvalidInputError."""
        wanted = None if scopes is None else [check_scope(scope) for scope in scopes]
        return await self._runtime().stores.budgets.list_budgets(wanted)


def _money(value: object) -> int:
    rule = "must be US dollars from 0 to 1000000, such as 2.50"
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        raise InvalidInputError("dollars", rule, value) from None
    if isinstance(value, bool) or not amount.is_finite() or not 0 <= amount <= 1_000_000:
        raise InvalidInputError("dollars", rule, value)
    return to_nano(amount)


def _tokens(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
        raise InvalidInputError("tokens", f"must be a whole number from 0 to {_MOST}", value)
    return value
