"""What model calls cost, added up."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from headrace.model.usage import Usage

#: How long the sums of a day are kept, but for scopes with a budget: there nothing that was spent is forgotten.
SPEND_RETENTION = timedelta(days=400)


class SpendGroup(StrEnum):
    """By what spending is added up."""

    POOL = "pool"
    MODEL = "model"
    BATCH = "batch"
    RUN = "run"
    TENANT = "tenant"
    #: of calls, UTC
    DAY = "day"
    PURPOSE = "purpose"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendRow:
    """One group's sum."""

    #: the pool, "provider/model", batch, run, tenant, day (2026-11-22) or purpose
    name: str
    #: of settled calls
    usage: Usage
    #: calls by state, the live ones included
    in_flight: int
    orphaned: int
    #: what the orphaned calls may have cost at most, in nanodollars
    orphaned_nano: int
    #: orphaned calls whose price is not known
    orphaned_unpriced: int
    #: calls that ended with an error, orphaned ones included, by its code
    errors: dict[str, int] = field(default_factory=dict)
