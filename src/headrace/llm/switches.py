"""How a call uses the memo, and whose."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class MemoUse(StrEnum):
    """What becomes of stored answers.

    A job that runs again, after parking or a crash, finds what it bought itself, whichever of these holds.
    """

    #: an answer that is stored stands, and costs nothing
    USE = "use"
    #: buy a new answer and store it in the place of the old one
    FRESH = "fresh"
    #: neither read nor store for others: outside of a job every ask is paid for
    BYPASS = "bypass"


class OnBudget(StrEnum):
    """What a call does that a budget has no room for."""

    #: wait until the budget is raised, or the day is over; in a job without a slot
    WAIT = "wait"
    #: raise BudgetUsedUpError, so that its caller can go on without an answer
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Switches:
    """What holds for all calls of one `LLM`."""

    memo: MemoUse = MemoUse.USE
    #: whose memo and budget; None: everybody's memo, no budget of a tenant
    tenant: str | None = None
    on_budget: OnBudget = OnBudget.WAIT
