"""The heat map of severities."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.apps.report.charts.frames import MOST_BARS, QUIET, Rows, Spec, beside, by_name, distinct, frame, safe_name
from headrace.apps.report.charts.palette import HEAT, ON_DARK, ON_LIGHT
from headrace.apps.report.data.defects import SEVERITIES
from headrace.apps.report.output.wording import Wording
from headrace.apps.report.stats.values import Cross


def heat_map(crosses: Sequence[Cross], word: Wording) -> Spec:
    """How many failing cases there are of each severity in each module."""
    shown = crosses[:MOST_BARS]
    names = distinct([safe_name(word.label("module", one.name)) for one in shown])
    severities = [word.label("severity", severity) for severity in SEVERITIES]
    rows = [
        {"module": name, "severity": label, "count": one.counts[severity]}
        for name, one in zip(names, shown, strict=True)
        for severity, label in zip(SEVERITIES, severities, strict=True)
    ]
    said = "; ".join(f"{row['module']}, {row['severity']}: {row['count']}" for row in rows if row["count"])
    told = (word("chart.severity"), said)
    columns = {"module": word("column.module"), "severity": word("column.severity"), "count": word("column.cases")}
    size = {"width": 300, "height": {"step": 26}}
    return frame("severity", told, columns, rows, layer=_layers(rows, names, severities), **size)


def _layers(rows: Rows, names: Sequence[str], severities: Sequence[str]) -> list[Spec]:
    """Coloured cells with numbers in them. Cells with nothing stay empty: what is there stands out."""
    most = max(row["count"] for row in rows)
    scale = {"type": "quantize", "domain": [0, most], "range": list(HEAT)}
    where = {
        "y": beside("module", names, scale={"domain": list(names), "padding": 0.06}),
        "x": by_name(
            "severity",
            axis=QUIET | {"orient": "top", "labelAngle": 0},
            scale={"domain": list(severities), "padding": 0.06},
        ),
    }
    heat = {"field": "count", "type": "quantitative", "legend": None, "scale": scale}
    ink = {"condition": {"test": f"datum.count >= {most / 2}", "value": ON_DARK}, "value": ON_LIGHT}
    filled = [{"filter": "datum.count > 0"}]
    return [
        {"transform": filled, "mark": {"type": "rect", "cornerRadius": 3}, "encoding": where | {"color": heat}},
        {"transform": filled, "mark": "text", "encoding": where | {"text": {"field": "count"}, "fill": ink}},
    ]
