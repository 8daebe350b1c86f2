"""Cases by module, priority, executor and day, and severities by module."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from headrace.apps.report.data.cases import Case
from headrace.apps.report.data.defects import SEVERITIES
from headrace.apps.report.data.modules import UNCATEGORIZED, Assignment
from headrace.apps.report.stats.values import Cross, Split, split


def modules_by_case(cases: Iterable[Case], assignments: Iterable[Assignment]) -> dict[str, str]:
    """Return the module of each case, by its id."""
    known = {assignment.case_id: assignment.module for assignment in assignments}
    return {case.case_id: known.get(case.case_id) or UNCATEGORIZED for case in cases}


def split_by(cases: Iterable[Case], name: Callable[[Case], str]) -> list[Split]:
    """Return the cases by a value of theirs, by name; cases without the value come last."""
    groups: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        groups[name(case)].append(case)
    return [split(key, groups[key]) for key in sorted(groups, key=lambda key: (not key, key))]


def worst_first(splits: Iterable[Split]) -> tuple[Split, ...]:
    """Return splits with the most failing cases first, then the largest."""
    return tuple(sorted(splits, key=lambda one: (-one.failing, -one.total, one.name)))


def busiest_first(splits: Iterable[Split]) -> tuple[Split, ...]:
    """Return splits with the largest first; what has no name comes last."""
    return tuple(sorted(splits, key=lambda one: (not one.name, -one.total, one.name)))


def severities_by_module(pairs: Iterable[tuple[str, str]], order: Sequence[str]) -> tuple[Cross, ...]:
    """Return how many there are of each severity in each module, in the order of `order`."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for module, severity in pairs:
        counts[module][severity if severity in SEVERITIES else "unknown"] += 1
    return tuple(_cross(module, counts[module]) for module in order if module in counts)


def _cross(name: str, counts: Mapping[str, int]) -> Cross:
    filled: dict[str, int] = {severity: counts.get(severity, 0) for severity in SEVERITIES}
    return Cross(name=name, total=sum(filled.values()), counts=filled)
