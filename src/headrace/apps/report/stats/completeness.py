"""How many cases lack what reports use."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.apps.report.data.base import Value
from headrace.apps.report.data.cases import Case, Status

#: Fields of every case that figures or texts rest on.
FIELDS = ("title", "module", "priority", "steps", "expected", "executor", "executed_at", "duration_seconds")
#: Fields that only failing cases need.
FIELDS_OF_FAILING = ("severity", "actual", "environment")


class Completeness(Value):
    """How many of `of` cases have the field, and how many lack it."""

    field: str
    present: int
    missing: int
    of: int
    #: Whether only failed and blocked cases are asked for it.
    failing_only: bool = False


def completeness_of(cases: Iterable[Case]) -> tuple[Completeness, ...]:
    """Return the completeness of every field; the status lacks where it is unknown."""
    everything = list(cases)
    failing = [case for case in everything if case.fails]
    unknown = sum(case.status is Status.UNKNOWN for case in everything)
    status = Completeness(field="status", present=len(everything) - unknown, missing=unknown, of=len(everything))
    return (
        status,
        *(_count(field, everything, failing_only=False) for field in FIELDS),
        *(_count(field, failing, failing_only=True) for field in FIELDS_OF_FAILING),
    )


def _count(field: str, cases: list[Case], *, failing_only: bool) -> Completeness:
    missing = sum(getattr(case, field) in (None, "") for case in cases)
    return Completeness(
        field=field, present=len(cases) - missing, missing=missing, of=len(cases), failing_only=failing_only
    )
