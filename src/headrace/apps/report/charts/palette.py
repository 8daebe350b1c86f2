"""Colours that people with every kind of colour vision can tell apart, on white and on black."""

from __future__ import annotations

from headrace.apps.report.data.cases import Status

#: In the order in which bars are stacked.
STATUS_COLOURS = {
    Status.PASSED: "#00a862",
    Status.FAILED: "#d6260b",
    Status.BLOCKED: "#7f69bf",
    Status.SKIPPED: "#6c7480",
    Status.UNKNOWN: "#ebb30c",
}
#: From few to many; words on the last two are white.
HEAT = ("#fde8d7", "#f9b385", "#c2410c", "#7c2d12")
BAR = "#3b7dd8"
LINES = (BAR, "#c76a12")
#: Written on light and on dark marks.
ON_LIGHT, ON_DARK = "#1c2026", "#ffffff"
