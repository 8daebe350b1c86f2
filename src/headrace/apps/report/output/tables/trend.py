"""What changed since the report before."""

from __future__ import annotations

from typing import Any

from headrace.apps.report.output.tables.base import Column, Table, columns
from headrace.apps.report.output.tables.figures import RATES, STATUSES, told
from headrace.apps.report.output.view import View
from headrace.apps.report.stats.trend import Delta, Trend

#: What may have become of a case, the worst first.
MOVES = ("newly_failing", "still_failing", "unconfirmed", "fixed", "new_cases", "removed_cases")


def trend_tables(view: View) -> list[Table]:
    """Figures, modules, cases and clusters then and now, and the reports before; nothing without one."""
    trend = view.stats.trend
    if trend is None:
        return []
    return [_changes(view, trend), _modules(view, trend), _moves(view, trend), _clusters(view, trend),
            _history(view, trend)]  # fmt: skip


def _changes(view: View, trend: Trend) -> Table:
    word = view.word
    rows = [[word(f"rate.{name}"), *_told(trend.rates[name], is_rate=True)] for name in RATES]
    rows += [[word.label("status", name), *_told(trend.by_status[name], is_rate=False)] for name in STATUSES]
    return Table("changes", columns("figure", "before", "now", "change"), rows)


def _told(one: Delta, *, is_rate: bool) -> list[str]:
    change = "–" if one.change is None else f"{one.change:+g}" if one.change else "0"
    return [told(one.before, is_rate=is_rate), told(one.now, is_rate=is_rate), change]


def _modules(view: View, trend: Trend) -> Table:
    names = (
        Column("module"), *columns("total_before", "total_now", "failing_before", "failing_now", "failing_change",
                                   kind="number"),
        *columns("rate_before", "rate_now", kind="percent"), Column("rate_change", "number"),
    )  # fmt: skip
    rows = [
        [
            view.word.label("module", one.name), one.total.before, one.total.now, one.failing.before,
            one.failing.now, one.failing.change, one.pass_rate_of_executed.before, one.pass_rate_of_executed.now,
            one.pass_rate_of_executed.change,
        ]
        for one in trend.modules
    ]  # fmt: skip
    return Table("module_changes", names, rows)


def _moves(view: View, trend: Trend) -> Table:
    rows = [_move(view, name, case_id) for name in MOVES for case_id in getattr(trend, name)]
    return Table("moves", (Column("what"), Column("case_id", "case"), *columns("title", "module")), rows)


def _move(view: View, name: str, case_id: str) -> list[Any]:
    case = view.cases.get(case_id)
    what = view.word(f"move.{name}")
    return [what, case_id, case.title, view.module(case_id)] if case is not None else [what, case_id, "", ""]


def _clusters(view: View, trend: Trend) -> Table:
    rows = []
    if trend.clusters is not None:
        names = {one.cluster_id: one.name for one in view.document.clusters} | trend.clusters.gone_names
        rows = [
            [view.word(f"seen.{what}"), cluster_id, names.get(cluster_id, "")]
            for what in ("new", "known", "gone")
            for cluster_id in getattr(trend.clusters, what)
        ]
    return Table("cluster_changes", (Column("what"), Column("cluster_id", "cluster"), Column("name")), rows)


def _history(view: View, trend: Trend) -> Table:
    now = view.stats
    rows = [
        [one.created_at, one.job_id, one.total, one.failing, *(getattr(one, name) for name in RATES)]
        for one in trend.history
    ]
    rows.append(
        [view.document.run.created_at, view.document.run.job_id, now.total, now.failing,
         *(getattr(now.rates, name).percent for name in RATES)]
    )  # fmt: skip
    names = (*columns("created_at", "job_id"), *columns("total", "failing_now", kind="number"),
             *columns(*RATES, kind="percent"))  # fmt: skip
    return Table("history", names, rows)
