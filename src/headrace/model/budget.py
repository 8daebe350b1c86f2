"""Budgets: how much money, how many tokens and calls a scope may use."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from headrace.model.calls import DAY
from headrace.model.errors import InvalidInputError

MAX_TENANT = 128
_SCOPE = re.compile(r"(batch|run):[0-9a-f-]{36}|tenant:.+|day")
_SCOPE_RULE = 'must be "day", "tenant:NAME", "batch:ID" or "run:ID"'


def check_tenant(value: object, *, field: str = "tenant") -> str:
    """Return the name of a tenant: 1–128 printable characters. Raises InvalidInputError."""
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_TENANT or not value.isprintable():
        raise InvalidInputError(field, f"must name a tenant in 1 to {MAX_TENANT} printable characters", value)
    return value


def check_scope(value: object, *, field: str = "scope") -> str:
    """Return the scope of a budget. Raises InvalidInputError.

    >>> check_scope("tenant:acme")
    'tenant:acme'
    """
    if not isinstance(value, str) or not _SCOPE.fullmatch(value):
        raise InvalidInputError(field, _SCOPE_RULE, value)
    kind, _, name = value.partition(":")
    if kind == "tenant":
        check_tenant(name, field=field)
    elif kind != DAY:
        try:
            UUID(name)
        except ValueError:
            raise InvalidInputError(field, _SCOPE_RULE, value) from None
    return value


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a scope; None is no limit.

    A call is made where what is spent, what calls in flight may use at most, and what it may use at most itself stay
    within each. So a budget is overshot only by calls that use more than was estimated, and by no more than those in
    flight. An orphaned call counts with what it may have used at most.
    """

    #: nanodollars; calls of unknown price do not count against it
    cost_nano: int | None = None
    #: prompts and answers together
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class BudgetView:
    """A scope's budget as it stands. `reserved` is what its calls in flight may use at most."""

    scope: str
    #: None: none is set, the scope is only counted
    budget: Budget | None
    #: spent, orphaned calls included
    cost_nano: int
    tokens: int
    reserved_nano: int
    reserved_tokens: int
    #: calls whose price is not known: not in `cost_nano`
    unpriced: int

    @property
    def left_nano(self) -> int | None:
        """Nanodollars that are neither spent nor reserved, 0 at least; None: no limit of money."""
        if self.budget is None or self.budget.cost_nano is None:
            return None
        return max(self.budget.cost_nano - self.cost_nano - self.reserved_nano, 0)

    @property
    def left_tokens(self) -> int | None:
        """Tokens that are neither used nor reserved, 0 at least; None: no limit of tokens."""
        if self.budget is None or self.budget.tokens is None:
            return None
        return max(self.budget.tokens - self.tokens - self.reserved_tokens, 0)

    @property
    def is_used_up(self) -> bool:
        """Whether what is spent has reached a limit."""
        budget = self.budget or Budget()
        used = ((budget.cost_nano, self.cost_nano), (budget.tokens, self.tokens))
        return any(limit is not None and spent >= limit for limit, spent in used)


class BudgetState(StrEnum):
    """Whether calls pass a budget."""

    #: calls pass; also where none was tried lately
    OPEN = "open"
    #: what is left is less than a call asked for that waits, or nothing is left beside what calls in flight may use
    FULL = "full"
    #: what is spent has reached a limit
    USED_UP = "used up"
