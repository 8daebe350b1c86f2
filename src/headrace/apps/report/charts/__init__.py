"""Charts: what they show as data (Vega-Lite specifications), and the drawing of them."""

from headrace.apps.report.charts.building import build_charts
from headrace.apps.report.charts.drawing import draw

__all__ = ["build_charts", "draw"]
