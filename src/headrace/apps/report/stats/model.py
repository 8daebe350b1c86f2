"""All figures of a report."""

from __future__ import annotations

from headrace.apps.report.data.base import Value
from headrace.apps.report.stats.completeness import Completeness
from headrace.apps.report.stats.durations import Durations
from headrace.apps.report.stats.gate import Gate
from headrace.apps.report.stats.trend import Trend
from headrace.apps.report.stats.values import Cross, Rates, Split


class Stats(Value):
    """What `ReportDocument.stats` holds."""

    total: int
    by_status: dict[str, int]
    #: Failed and blocked cases: each of them has a defect fact.
    failing: int
    rates: Rates
    gate: Gate
    #: The worst first.
    modules: tuple[Split, ...]
    #: How many cases have their module from the sheet, a rule, the model, or nobody.
    tagged_by: dict[str, int]
    #: Failing cases by the severity that the sheet gives.
    severity_by_module: tuple[Cross, ...]
    #: Defect facts by the severity that they state; empty until facts are known.
    defect_severity_by_module: tuple[Cross, ...] = ()
    priorities: tuple[Split, ...]
    #: The busiest first.
    executors: tuple[Split, ...]
    durations: Durations
    #: Only days that sheets name; `without_day` counts the cases that have none.
    days: tuple[Split, ...]
    without_day: int
    completeness: tuple[Completeness, ...]
    #: None: there was nothing to compare with.
    trend: Trend | None = None
