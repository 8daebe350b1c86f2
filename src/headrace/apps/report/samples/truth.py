"""What a sample is known to hold, kept by what writes it: nothing here was ever read out of the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

#: Fields that reports use, of all cases and of those that failed or are blocked.
_USED = ("title", "module", "priority", "status", "executor", "executed_at", "duration_seconds", "expected")
_OF_FAILING = ("severity", "actual")
_FAILING = ("failed", "blocked")


@dataclass
class Known:
    """One case as it was meant: the status that its word stands for, fields that it lacks, rules that it breaks."""

    status: str
    module: str = ""
    priority: str = ""
    severity: str = ""
    missing: set[str] = field(default_factory=set)
    issues: list[str] = field(default_factory=list)


@dataclass
class Truth:
    """All cases of a sample, and the rules that its other rows break."""

    cases: list[Known] = field(default_factory=list)
    others: list[str] = field(default_factory=list)

    def figures(self, *, without: Iterable[str] = ()) -> dict[str, Any]:
        """Return counts; fields `without` are none that the format could give."""
        failing = [case for case in self.cases if case.status in _FAILING]
        missing = {name: sum(name in case.missing for case in self.cases) for name in _USED}
        missing |= {name: sum(name in case.missing for case in failing) for name in _OF_FAILING}
        return {
            "cases": len(self.cases),
            "rejected": len(self.others),
            "statuses": _counts(case.status for case in self.cases),
            "modules": _counts(case.module for case in self.cases),
            "priorities": _counts(case.priority for case in self.cases),
            "severities": _counts(case.severity for case in failing),
            "missing": {name: count for name, count in sorted(missing.items()) if count and name not in set(without)},
            "issues": _counts([*self.others, *(rule for case in self.cases for rule in case.issues)]),
        }


def _counts(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))
