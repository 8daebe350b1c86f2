"""The histogram of durations, the pareto of clusters, and lines over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.apps.report.charts.frames import (
    MOST_BARS,
    Rows,
    Spec,
    beside,
    by_count,
    by_name,
    distinct,
    frame,
    safe_name,
)
from headrace.apps.report.charts.palette import BAR, LINES
from headrace.apps.report.data.clusters import Cluster
from headrace.apps.report.output.wording import Wording, percent
from headrace.apps.report.stats.durations import Durations
from headrace.apps.report.stats.model import Stats
from headrace.apps.report.stats.previous import Point

_SMALL = {"width": 330, "height": 190}


def histogram(durations: Durations, word: Wording) -> Spec:
    """How many cases took how long."""
    rows = [{"bin": one.name, "count": one.count} for one in durations.bins]
    where = {"x": by_name("bin", axis={"labelAngle": -30}), "y": by_count("count", word("column.cases"))}
    layers = [
        {"mark": {"type": "bar", "color": BAR}, "encoding": where},
        {"mark": {"type": "text", "dy": -7}, "encoding": where | {"text": {"field": "count"}}},
    ]
    said = "; ".join(f"{row['bin']}: {row['count']}" for row in rows)
    title = word("chart.duration")
    if durations.missing:
        title += " " + word("chart.duration.missing", count=durations.missing)
    columns = {"bin": word("column.duration"), "count": word("column.cases")}
    return frame("duration", (title, said), columns, rows, layer=layers, **_SMALL)


def pareto(clusters: Sequence[Cluster], word: Wording) -> Spec:
    """The largest clusters, and what part of the failing cases they make up together."""
    largest = sorted(clusters, key=lambda one: -one.size)[:MOST_BARS]
    everything = sum(one.size for one in clusters)
    names = distinct([safe_name(one.name) for one in largest])
    rows: list[dict[str, Any]] = []
    sofar = 0
    for rank, (name, one) in enumerate(zip(names, largest, strict=True)):
        sofar += one.size
        cumulative = round(100 * sofar / everything, 2)
        rows.append({"rank": rank, "cluster": name, "count": one.size, "cumulative": cumulative})
    y = beside("cluster", names)
    share = by_count("cumulative", word("column.cumulative"), orient="top", grid=False)
    share["scale"] = {"domain": [0, 100]}
    line = {"type": "line", "color": "currentColor", "point": {"color": "currentColor"}, "strokeWidth": 1.5}
    layers = [
        {"mark": {"type": "bar", "color": BAR}, "encoding": {"y": y, "x": by_count("count", word("column.cases"))}},
        {"mark": line, "encoding": {"y": y, "x": share, "order": {"field": "rank"}}},
    ]
    said = "; ".join(f"{row['cluster']}: {row['count']} ({percent(row['cumulative'])})" for row in rows)
    columns = {name: word(f"column.{key}") for name, key in
               (("cluster", "cluster"), ("count", "cases"), ("cumulative", "cumulative"))}  # fmt: skip
    size = {"width": 270, "height": {"step": 26}, "resolve": {"scale": {"x": "independent"}}}
    return frame("pareto", (word("chart.pareto"), said), columns, rows, layer=layers, **size)


def over_time(stats: Stats, history: Sequence[Point], word: Wording) -> Spec:
    """Pass rates of earlier reports, and of this one last."""
    days = [*distinct([point.created_at[:10] for point in history]), word("trend.now")]
    names = ("pass_rate_of_executed", "pass_rate_of_all")
    now = [getattr(stats.rates, name).percent for name in names]
    values = [*([getattr(point, name) for name in names] for point in history), now]
    rows = [
        {"day": day, "rate": word(f"rate.{name}"), "percent": value}
        for day, pair in zip(days, values, strict=True)
        for name, value in zip(names, pair, strict=True)
        if value is not None
    ]
    said = "; ".join(f"{row['day']}, {row['rate']}: {percent(row['percent'])}" for row in rows)
    columns = {"day": word("column.report"), "rate": word("column.rate"), "percent": "%"}
    mark = {"type": "line", "point": {"filled": True, "size": 45}, "strokeWidth": 2}
    encoding = _lines(rows, [word(f"rate.{name}") for name in names])
    return frame("trend", (word("chart.trend"), said), columns, rows, mark=mark, encoding=encoding, **_SMALL)


def _lines(rows: Rows, names: Sequence[str]) -> Spec:
    """Two lines, told apart by colour and by dashes; the scale begins a little below the lowest rate."""
    lowest = min((row["percent"] for row in rows), default=0)
    percents = by_count("percent", "%")
    percents["scale"] = {"domain": [max(0, 10 * ((lowest - 5) // 10)), 100]}
    colours = {"domain": list(names), "range": list(LINES)}
    dashes = {"domain": list(names), "range": [[1, 0], [5, 4]]}
    legend = {"columns": 1, "labelLimit": 320}
    return {
        "x": by_name("day", axis={"labelAngle": -30}),
        "y": percents,
        "color": {"field": "rate", "type": "nominal", "scale": colours, "legend": legend},
        "strokeDash": {"field": "rate", "type": "nominal", "scale": dashes},
    }
