"""Charts of the workbook: Excel's own, so people can change them."""

from __future__ import annotations

from typing import Any

from headrace.apps.report.charts.palette import BAR, LINES, STATUS_COLOURS
from headrace.apps.report.output.book import Book

#: Modules and clusters of a chart.
MOST_BARS = 15
_SIZE = {"width": 560, "height": 300}


def add_charts(book: Book, sheet: Any, column: int) -> None:
    """Put the charts one below the other, beside the tables of the first sheet."""
    made = [_donut(book), _modules(book), _pareto(book), _durations(book), _trend(book)]
    row = 1
    for chart in made:
        if chart is not None:
            chart.set_size(_SIZE)
            sheet.insert_chart(row, column, chart)
            row += 16


def _donut(book: Book) -> Any:
    placed, word = book.placed["statuses"], book.view.word
    chart = book.workbook.add_chart({"type": "doughnut"})
    points = [{"fill": {"color": STATUS_COLOURS[status]}} for status in STATUS_COLOURS]
    labels = {"percentage": True, "leader_lines": True}
    chart.add_series({"name": word("chart.status"), "categories": placed.cells("status"),
                      "values": placed.cells("total"), "points": points, "data_labels": labels})  # fmt: skip
    chart.set_title({"name": word("chart.status")})
    return chart


def _modules(book: Book) -> Any:
    placed, word = book.placed["modules"], book.view.word
    if placed.last < placed.first:
        return None
    chart = book.workbook.add_chart({"type": "bar", "subtype": "stacked"})
    for status, colour in STATUS_COLOURS.items():
        chart.add_series({"name": word.label("status", status), "categories": placed.cells("module", MOST_BARS),
                          "values": placed.cells(status, MOST_BARS), "fill": {"color": colour}, "gap": 40})  # fmt: skip
    chart.set_title({"name": word("chart.modules")})
    chart.set_y_axis({"reverse": True})
    chart.set_legend({"position": "bottom"})
    return chart


def _pareto(book: Book) -> Any:
    placed, word = book.placed["clusters"], book.view.word
    if placed.last < placed.first:
        return None
    names = placed.cells("name", MOST_BARS)
    bars = book.workbook.add_chart({"type": "column"})
    bars.add_series({"name": word("column.size"), "categories": names, "values": placed.cells("size", MOST_BARS),
                     "fill": {"color": BAR}, "gap": 40})  # fmt: skip
    line = book.workbook.add_chart({"type": "line"})
    line.add_series({"name": word("column.cumulative"), "categories": names, "y2_axis": True,
                     "values": placed.cells("cumulative", MOST_BARS), "marker": {"type": "circle"},
                     "line": {"color": LINES[1], "width": 2}})  # fmt: skip
    bars.combine(line)
    bars.set_title({"name": word("chart.pareto")})
    line.set_y2_axis({"min": 0, "max": 100})
    bars.set_legend({"position": "bottom"})
    return bars


def _durations(book: Book) -> Any:
    placed, word = book.placed["durations"], book.view.word
    if not book.view.stats.durations.of:
        return None
    chart = book.workbook.add_chart({"type": "column"})
    chart.add_series({"name": word("column.cases"), "categories": placed.cells("duration"),
                      "values": placed.cells("count"), "fill": {"color": BAR}, "gap": 20,
                      "data_labels": {"value": True}})  # fmt: skip
    chart.set_title({"name": word("chart.duration")})
    chart.set_legend({"none": True})
    return chart


def _trend(book: Book) -> Any:
    placed, word = book.placed.get("history"), book.view.word
    if placed is None or placed.last <= placed.first:
        return None
    chart = book.workbook.add_chart({"type": "line"})
    for name, colour in zip(("pass_rate_of_executed", "pass_rate_of_all"), LINES, strict=True):
        chart.add_series({"name": word(f"rate.{name}"), "categories": placed.cells("created_at"),
                          "values": placed.cells(name), "line": {"color": colour, "width": 2},
                          "marker": {"type": "circle"}})  # fmt: skip
    chart.set_title({"name": word("chart.trend")})
    chart.set_y_axis({"max": 100})
    chart.set_legend({"position": "bottom"})
    return chart
