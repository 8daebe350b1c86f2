"""Waits of a call: for its quota, a budget, a place in its pool, or an equal call that is under way."""

from __future__ import annotations

import asyncio
import random
from contextlib import nullcontext
from datetime import timedelta

from headrace.model.calls import Opening, Verdict
from headrace.model.parking import KEEP_SLOT, waits_for_limit

#: Between two looks at an equal call elsewhere, or at a full pool: the first, and the longest.
_FIRST_LOOK, _LONGEST_LOOK = timedelta(seconds=0.02), timedelta(seconds=0.5)
#: Between two looks at a budget that is used up: the first, what each call refused since adds, and the longest.
_BUDGET_LOOK, _EACH_REFUSED, _LONGEST_BUDGET_LOOK = timedelta(seconds=3), timedelta(seconds=0.05), timedelta(seconds=30)
_DAY_LOOK = timedelta(minutes=5)
#: Refusals that are waits for a limit; others are waits for an equal call.
_LIMITS = (Verdict.OVER_BUDGET, Verdict.DAY_FULL, Verdict.POOL_FULL)


class MustWaitError(Exception):
    """A call has to wait longer than its caller may keep a slot; stays within the gateway."""

    def __init__(self, wait: timedelta, reason: str, *, limited: bool = True) -> None:
        """`limited`: for a quota or a budget, and not for an equal call."""
        super().__init__(reason)
        self.wait, self.reason, self.limited = wait, reason, limited


class BudgetWaitError(MustWaitError):
    """A call has to wait until a budget is raised."""

    def __init__(self, wait: timedelta, scope: str) -> None:
        super().__init__(wait, f"the budget of {scope} to be raised")
        self.scope = scope


class BudgetLooks:
    """When calls look again at a budget that had no room for them: the more there are, the later.

    Somebody has to raise it, and may be waited for in thousands of jobs, whose looks cost a claim each.
    """

    def __init__(self) -> None:
        self._refused = 0

    def refused(self) -> timedelta:
        """Count a call that was refused, and return when it looks again."""
        self._refused += 1
        return min(_BUDGET_LOOK + self._refused * _EACH_REFUSED, _LONGEST_BUDGET_LOOK)

    def opened(self) -> None:
        """There is room again."""
        self._refused = 0


class Patience:
    """How long one call may wait where it stands: as long as it takes, or in a slot `KEEP_SLOT` in all."""

    def __init__(self, looks: BudgetLooks, *, keeps_slot: bool, waits_for_budgets: bool = True) -> None:
        self._left: timedelta | None = KEEP_SLOT if keeps_slot else None
        self._waits_for_budgets = waits_for_budgets
        self._look = _FIRST_LOOK
        self._looks = looks

    @property
    def left(self) -> timedelta | None:
        """How long it may wait still; None: as long as it takes."""
        return self._left

    def spend(self, waited: float) -> None:
        """Take in that it waited for so many seconds."""
        if self._left is not None:
            self._left = max(self._left - timedelta(seconds=waited), timedelta())

    async def after(self, opening: Opening) -> None:
        """Wait before the next look, for what the store refused. Raises MustWaitError."""
        with waits_for_limit() if opening.verdict in _LIMITS else nullcontext():
            await self._after(opening)

    async def _after(self, opening: Opening) -> None:
        match opening.verdict:
            case Verdict.OVER_BUDGET:
                refused = BudgetWaitError(self._looks.refused(), str(opening.scope))
                if not self._waits_for_budgets:
                    raise refused
                await self._pause(refused.wait, refused)
            case Verdict.DAY_FULL:
                await self._pause(_DAY_LOOK, "the pool's requests of another day")
            case Verdict.ENDED:
                # An answer of the store was lost, and its call ended meanwhile: another call, under an id of its own.
                raise MustWaitError(_FIRST_LOOK, "its turn", limited=False)
            case Verdict.POOL_FULL:
                await self._look_again("a place among the calls in flight")
            case _:
                await self._look_again("an equal call that is under way", limited=False)

    async def _look_again(self, reason: str, *, limited: bool = True) -> None:
        wait, self._look = self._look, min(self._look * 1.5, _LONGEST_LOOK)
        await self._pause(wait, reason, limited=limited)

    async def _pause(self, wait: timedelta, reason: str | BudgetWaitError, *, limited: bool = True) -> None:
        # Jitter: what waits for the same thing must not come back at once.
        wait *= random.uniform(0.7, 1.3)  # noqa: S311 - not for security
        if self._left is not None and wait > self._left:
            longest = max(wait, _LONGEST_LOOK)
            if isinstance(reason, BudgetWaitError):
                raise BudgetWaitError(longest, reason.scope)
            raise MustWaitError(longest, reason, limited=limited)
        await asyncio.sleep(wait.total_seconds())
        self.spend(wait.total_seconds())
