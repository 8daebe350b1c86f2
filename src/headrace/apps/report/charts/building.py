"""Which charts a report has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.apps.report.charts.frames import Spec
from headrace.apps.report.charts.others import histogram, over_time, pareto
from headrace.apps.report.charts.severities import heat_map
from headrace.apps.report.charts.statuses import donut, stacked
from headrace.apps.report.data.clusters import Cluster
from headrace.apps.report.data.document import Lang
from headrace.apps.report.output.wording import wording
from headrace.apps.report.stats.model import Stats

#: All charts, in the order in which pages show them; one without data is left out.
CHARTS = ("status", "modules", "severity", "pareto", "priority", "executor", "duration", "days", "trend")


def build_charts(stats: Stats | Mapping[str, Any], clusters: Sequence[Cluster], lang: Lang) -> dict[str, Spec]:
    """Return the charts of a report as Vega-Lite specifications, by name."""
    figures = Stats.model_validate(stats) if isinstance(stats, Mapping) else stats
    if not figures.total:
        return {}
    word = wording(lang)
    charts = {
        "status": donut(figures, word),
        "modules": stacked("modules", figures.modules, word, "module"),
        "priority": stacked("priority", figures.priorities, word, "priority"),
    }
    if any(one.name for one in figures.executors):
        charts["executor"] = stacked("executor", figures.executors, word, "executor")
    if len(figures.days) > 1:
        charts["days"] = stacked("days", figures.days, word, "day")
    if severities := figures.defect_severity_by_module or figures.severity_by_module:
        charts["severity"] = heat_map(severities, word)
    if figures.durations.of:
        charts["duration"] = histogram(figures.durations, word)
    if clusters:
        charts["pareto"] = pareto(clusters, word)
    if figures.trend is not None and figures.trend.history:
        charts["trend"] = over_time(figures, figures.trend.history, word)
    return {name: charts[name] for name in CHARTS if name in charts}
