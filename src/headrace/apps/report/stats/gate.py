"""The quality gate: exit criteria, and whether they are met whatever the data do not say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from pydantic import Field

from headrace.apps.report.data.base import Value
from headrace.apps.report.data.cases import Case, Status
from headrace.apps.report.stats.values import EXECUTED

Verdict = Literal["pass", "fail", "undecidable"]
#: The criteria, in the order in which they are told.
CRITERIA = ("pass_rate_of_executed", "execution_rate", "failed_urgent", "blocked_most_urgent")


class Thresholds(Value):
    """What the exit criteria ask for."""

    #: Percent of the executed cases that must have passed.
    pass_rate_of_executed: float = Field(default=95.0, ge=0, le=100)
    #: Percent of all cases that must have been executed.
    execution_rate: float = Field(default=90.0, ge=0, le=100)
    #: How many urgent cases may have failed, and which priorities are urgent.
    failed_urgent: int = Field(default=0, ge=0)
    urgent: tuple[str, ...] = ("P0", "P1")
    #: How many of the most urgent cases may be blocked, and which priorities they have.
    blocked_most_urgent: int = Field(default=0, ge=0)
    most_urgent: tuple[str, ...] = ("P0",)


class Criterion(Value):
    """One exit criterion. `met` None: cases that say too little could turn it either way."""

    name: str
    comparison: Literal[">=", "<="]
    wanted: float
    unit: Literal["%", "cases"]
    actual: float | None
    met: bool | None
    #: How many cases say too little to be counted for sure.
    uncertain: int = 0
    #: Priorities that it is about.
    priorities: tuple[str, ...] = ()


class Gate(Value):
    """The verdict: `fail` where a criterion is not met, else `undecidable` where one cannot be told, else `pass`."""

    verdict: Verdict
    criteria: tuple[Criterion, ...]


def judge(cases: Sequence[Case], thresholds: Thresholds) -> Gate:
    """Return the verdict on cases."""
    criteria = (
        _pass_rate(cases, thresholds.pass_rate_of_executed),
        _execution_rate(cases, thresholds.execution_rate),
        _limit(cases, ("failed_urgent", Status.FAILED), thresholds.failed_urgent, thresholds.urgent),
        _limit(cases, ("blocked_most_urgent", Status.BLOCKED), thresholds.blocked_most_urgent, thresholds.most_urgent),
    )
    met = [criterion.met for criterion in criteria]
    verdict: Verdict = "fail" if False in met else "undecidable" if None in met else "pass"
    return Gate(verdict=verdict, criteria=criteria)


def _pass_rate(cases: Sequence[Case], wanted: float) -> Criterion:
    passed = _count(cases, Status.PASSED)
    executed, unknown = _count(cases, *EXECUTED), _count(cases, Status.UNKNOWN)
    return Criterion(
        name="pass_rate_of_executed", comparison=">=", wanted=wanted, unit="%", actual=_percent(passed, executed),
        met=_reaches((passed, passed + unknown), executed + unknown, wanted), uncertain=unknown,
    )  # fmt: skip


def _execution_rate(cases: Sequence[Case], wanted: float) -> Criterion:
    executed, unknown = _count(cases, *EXECUTED), _count(cases, Status.UNKNOWN)
    return Criterion(
        name="execution_rate", comparison=">=", wanted=wanted, unit="%", actual=_percent(executed, len(cases)),
        met=_reaches((executed, executed + unknown), len(cases), wanted), uncertain=unknown,
    )  # fmt: skip


def _reaches(bounds: tuple[int, int], of: int, wanted: float) -> bool | None:
    """Whether a rate reaches what is wanted at its lowest (True), or not even at its highest (False)."""
    if not of:
        return None
    lowest, highest = bounds
    if 100 * lowest >= wanted * of:
        return True
    return False if 100 * highest < wanted * of else None


def _limit(cases: Sequence[Case], about: tuple[str, Status], wanted: int, priorities: Iterable[str]) -> Criterion:
    """No more than `wanted` cases of a status and of these priorities; it cannot be told of nothing."""
    name, status = about
    chosen = tuple(priorities)
    sure = sum(case.status is status and case.priority in chosen for case in cases)
    uncertain = sum(
        case.status in (status, Status.UNKNOWN) and case.priority in (*chosen, "") for case in cases
    ) - sure  # fmt: skip
    met = None if not cases else False if sure > wanted else True if sure + uncertain <= wanted else None
    return Criterion(
        name=name, comparison="<=", wanted=wanted, unit="cases", actual=sure, met=met, uncertain=uncertain,
        priorities=chosen,
    )  # fmt: skip


def _count(cases: Iterable[Case], *statuses: Status) -> int:
    return sum(case.status in statuses for case in cases)


def _percent(count: int, of: int) -> float | None:
    return round(100 * count / of, 2) if of else None
