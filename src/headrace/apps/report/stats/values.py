"""Counts and rates, and how each is defined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from headrace.apps.report.data.base import Value
from headrace.apps.report.data.cases import Case, Status

#: A case of these was taken up. A blocked one was begun and did not pass, so it counts against the pass rate.
EXECUTED = (Status.PASSED, Status.FAILED, Status.BLOCKED)


class Rate(Value):
    """`count` of `of`; `percent` is rounded to two digits, and None of nothing."""

    count: int
    of: int
    percent: float | None


class Rates(Value):
    """The rates of a set of cases. Skipped and unknown ones never count as passed."""

    #: passed / (passed + failed + blocked)
    pass_rate_of_executed: Rate
    #: passed / all cases
    pass_rate_of_all: Rate
    #: (passed + failed + blocked) / all cases
    execution_rate: Rate


class Split(Value):
    """The cases that share a value: how many there are of each status. An empty name: the cases without the value."""

    name: str
    total: int
    #: Every status, also those with 0.
    by_status: dict[str, int]
    rates: Rates

    @property
    def failing(self) -> int:
        """How many failed or were blocked."""
        return self.by_status[Status.FAILED] + self.by_status[Status.BLOCKED]


class Cross(Value):
    """A row of a table of two dimensions: counts by the words of the other one."""

    name: str
    total: int
    counts: dict[str, int]


class Measure(Value):
    """A figure, how many cases it rests on, and how many could not take part."""

    value: float | None
    of: int
    missing: int


def rate(count: int, of: int) -> Rate:
    """Return a rate.

    >>> rate(1, 3).percent
    33.33
    """
    return Rate(count=count, of=of, percent=round(100 * count / of, 2) if of else None)


def count_statuses(cases: Iterable[Case]) -> dict[str, int]:
    """Return how many cases there are of each status."""
    counts = Counter(case.status.value for case in cases)
    return {status.value: counts[status.value] for status in Status}


def rates_of(by_status: Mapping[str, int]) -> Rates:
    """Return the rates of counts by status."""
    total, passed = sum(by_status.values()), by_status[Status.PASSED]
    executed = sum(by_status[status] for status in EXECUTED)
    return Rates(
        pass_rate_of_executed=rate(passed, executed),
        pass_rate_of_all=rate(passed, total),
        execution_rate=rate(executed, total),
    )


def split(name: str, cases: Iterable[Case]) -> Split:
    """Return the split of cases that share the value `name`."""
    by_status = count_statuses(cases)
    return Split(name=name, total=sum(by_status.values()), by_status=by_status, rates=rates_of(by_status))
