"""Charts of statuses: the donut, and stacked bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.apps.report.charts.frames import (
    MOST_BARS,
    Rows,
    Spec,
    beside,
    by_count,
    distinct,
    extra_width,
    frame,
    safe_name,
)
from headrace.apps.report.charts.palette import STATUS_COLOURS
from headrace.apps.report.output.wording import Wording, percent
from headrace.apps.report.stats.model import Stats
from headrace.apps.report.stats.values import Split

#: Between the pieces, so that neighbours are told apart without their colours.
_GAP = {"stroke": "#ffffff", "strokeWidth": 1, "strokeOpacity": 0.55}


def donut(stats: Stats, word: Wording) -> Spec:
    """How many cases ended how; the pass rate in the middle."""
    rows = _pieces(stats.by_status, word)
    said = "; ".join(f"{row['label']}: {row['count']}" for row in rows)
    middle = percent(stats.rates.pass_rate_of_executed.percent)
    legend = {"labelExpr": _legend_words(rows), "orient": "right", "columns": 1, "labelFontSize": 13}
    theta = {"field": "count", "type": "quantitative", "stack": True}
    ring = {
        "mark": {"type": "arc", "innerRadius": 66, "outerRadius": 100, **_GAP},
        "encoding": {"theta": theta, "order": {"field": "order"}, "color": _colour(word, rows, legend)},
    }
    words = [
        {"data": {"values": [{}]}, "mark": {"type": "text", "text": text, "fontSize": size, "dy": dy}}
        for text, size, dy in ((middle, 24, -6), (word("chart.status.middle"), 11, 16))
    ]
    columns = {"label": word("column.status"), "count": word("column.cases")}
    size = {"width": 210, "height": 210, "padding": {"right": 8 + extra_width(row["label"] for row in rows)}}
    return frame("status", (word("chart.status"), said), columns, rows, layer=[ring, *words], **size)


def stacked(name: str, splits: Sequence[Split], word: Wording, kind: str) -> Spec:
    """A bar for each split; those beyond the first ones are in the tables alone, and the title says so."""
    shown = splits[:MOST_BARS]
    names = distinct([safe_name(word.label(kind, one.name)) for one in shown])
    rows = [
        {"name": label, **piece}
        for label, one in zip(names, shown, strict=True)
        for piece in _pieces(one.by_status, word)
    ]
    title = word(f"chart.{name}")
    if len(splits) > len(shown):
        title += " " + word("chart.first", count=len(shown), of=len(splits))
    said = "; ".join(f"{label}: {one.failing}/{one.total}" for label, one in zip(names, shown, strict=True))
    told = (title, word("chart.failing_of_total", said=said))
    columns = {"name": word(f"column.{kind}"), "label": word("column.status"), "count": word("column.cases")}
    size = {"width": 300, "height": {"step": 24}}
    return frame(name, told, columns, rows, layer=_bars(rows, word), **size)


def _bars(rows: Rows, word: Wording) -> list[Spec]:
    """The bars, and the sum behind each."""
    y, x = beside("name", (row["name"] for row in rows)), by_count("count", word("column.cases"))
    total = {"aggregate": "sum", "field": "count", "type": "quantitative"}
    bars = {
        "mark": {"type": "bar", **_GAP},
        "encoding": {"y": y, "x": x, "order": {"field": "order"}, "color": _colour(word, rows, {})},
    }
    totals = {
        "mark": {"type": "text", "align": "left", "dx": 4},
        "encoding": {"y": y, "x": total, "text": total},
    }
    return [bars, totals]


def _pieces(by_status: Mapping[str, int], word: Wording) -> list[dict[str, Any]]:
    return [
        {"status": status.value, "label": word.label("status", status), "count": by_status[status], "order": order}
        for order, status in enumerate(STATUS_COLOURS)
        if by_status[status]
    ]


def _colour(word: Wording, rows: Rows, legend: Spec) -> Spec:
    present = [status for status in STATUS_COLOURS if any(row["status"] == status for row in rows)]
    scale = {
        "domain": [word.label("status", status) for status in present],
        "range": [STATUS_COLOURS[status] for status in present],
    }
    legend = {"columnPadding": 12 + extra_width(scale["domain"])} | legend
    return {"field": "label", "type": "nominal", "scale": scale, "legend": legend}


def _legend_words(rows: Rows) -> str:
    """An expression that adds the count to each word; the words are ours, not of the file."""
    counts = ", ".join(f"'{row['label']}': '{row['count']}'" for row in rows)
    return f"datum.label + '  ' + {{{counts}}}[datum.label]"
