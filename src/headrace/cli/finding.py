"""What `headrace doctor` finds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from headrace.model.errors import HeadraceError


class Status(StrEnum):
    """How a finding is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of `headrace doctor`."""

    check: str
    status: Status
    message: str
    #: What to do about it.
    fix: str | None = None
    #: Why the store could not be used at all.
    error: HeadraceError | None = None
