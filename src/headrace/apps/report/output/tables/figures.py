"""Counts, rates and exit criteria."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.apps.report.data.cases import Status
from headrace.apps.report.data.defects import SEVERITIES
from headrace.apps.report.output.tables.base import Column, Kind, Table, columns
from headrace.apps.report.output.view import View
from headrace.apps.report.output.wording import Wording, percent
from headrace.apps.report.stats.gate import Criterion
from headrace.apps.report.stats.values import Cross, Rates, Split, rate, rates_of

RATES = tuple(Rates.model_fields)
STATUSES = tuple(status.value for status in Status)


def criteria(view: View) -> Table:
    """What was wanted, what was found, and whether that is met."""
    names = (*columns("criterion", "wanted", "actual_value", "met"), Column("uncertain", "number"))
    rows = [_criterion(one, view.word) for one in view.stats.gate.criteria]
    return Table("criteria", names, rows)


def _criterion(one: Criterion, word: Wording) -> list[Any]:
    sign = {">=": "≥", "<=": "≤"}[one.comparison]
    unit = " %" if one.unit == "%" else ""
    met = {True: "met.yes", False: "met.no", None: "met.open"}[one.met]
    actual = "–" if one.actual is None else f"{one.actual:g}{unit}"
    name = word(f"criterion.{one.name}", priorities=", ".join(one.priorities))
    return [name, f"{sign} {one.wanted:g}{unit}", actual, word(met), one.uncertain]


def statuses(view: View) -> Table:
    """How many cases ended how."""
    stats = view.stats
    rows = [[name, stats.by_status[name], rate(stats.by_status[name], stats.total).percent] for name in STATUSES]
    names = (Column("status", "status"), Column("total", "number"), Column("share", "percent"))
    return Table("statuses", names, rows, rows_of="status")


def rates(view: View) -> Table:
    """The three rates, and of what they are."""
    found = view.stats.rates
    rows = [
        [view.word(f"rate.{name}"), one.percent, one.count, one.of, view.word(f"rate.help.{name}")]
        for name, one in ((name, getattr(found, name)) for name in RATES)
    ]
    names = (Column("rate"), Column("percent", "percent"), *columns("count", "of", kind="number"), Column("about"))
    return Table("rates", names, rows)


def splits(view: View, name: str, kind: str, values: Sequence[Split]) -> Table:
    """Counts by status and rates of each value, and of all together."""
    names = (
        Column(kind), *columns("total", *STATUSES, kind="number"), *columns(*RATES, kind="percent"),
    )  # fmt: skip
    rows = [[view.word.label(kind, one.name), *_counts(one.total, one.by_status, one.rates)] for one in values]
    sums = {status: sum(one.by_status[status] for one in values) for status in STATUSES}
    total = [view.word("column.total"), *_counts(sum(sums.values()), sums, rates_of(sums))]
    return Table(name, names, rows, total, rows_of="" if kind == "day" else kind)


def _counts(total: int, by_status: dict[str, int], found: Rates) -> list[Any]:
    return [total, *(by_status[status] for status in STATUSES), *(getattr(found, name).percent for name in RATES)]


def severities(view: View, name: str, crosses: Sequence[Cross]) -> Table:
    """Severities by module, and sums."""
    names = (Column("module"), *columns(*SEVERITIES, "total", kind="number"))
    rows = [
        [view.word.label("module", one.name), *(one.counts[key] for key in SEVERITIES), one.total] for one in crosses
    ]
    sums = [sum(one.counts[key] for one in crosses) for key in SEVERITIES]
    return Table(name, names, rows, [view.word("column.total"), *sums, sum(sums)])


def durations(view: View) -> Table:
    """How many cases took how long."""
    rows = [[one.name, one.count] for one in view.stats.durations.bins]
    return Table("durations", (Column("duration"), Column("count", "number")), rows)


def measures(view: View) -> Table:
    """Sum, median and extremes of durations, and on how many cases they rest."""
    found = view.stats.durations
    names = ("total_seconds", "median_seconds", "p95_seconds", "longest_seconds")
    rows = [
        [view.word(f"measure.{name}"), one.value, one.of, one.missing]
        for name, one in ((name, getattr(found, name)) for name in names)
    ]
    numbers: Kind = "number"
    return Table("measures", (Column("figure"), Column("duration_seconds", "seconds"),
                              *columns("of", "missing", kind=numbers)), rows)  # fmt: skip


def told(value: float | None, *, is_rate: bool) -> str:
    """Return a figure for people."""
    return percent(value) if is_rate else "–" if value is None else f"{value:g}"
