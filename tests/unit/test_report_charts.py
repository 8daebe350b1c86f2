"""Charts of reports: what they show, that they can hurt nobody, and what stands there where none can be drawn."""

from __future__ import annotations

import json
import math
import sys
from itertools import combinations
from typing import Any
from xml.etree import ElementTree

import pytest

from headrace.apps.report.charts import build_charts, draw
from headrace.apps.report.charts.building import CHARTS
from headrace.apps.report.charts.drawing import as_table
from headrace.apps.report.charts.frames import MOST_BARS, safe_name, width_of
from headrace.apps.report.charts.palette import STATUS_COLOURS
from headrace.apps.report.data.document import ReportDocument
from headrace.apps.report.stats import Stats, compute_stats
from tests.unit.report_documents import NASTY, document

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def report() -> ReportDocument:
    """A report with all charts."""
    return document()


def test_a_report_has_every_chart_and_their_figures_are_those_of_the_stats(report: ReportDocument) -> None:
    """Each as JSON, with its data within."""
    assert tuple(report.charts) == CHARTS
    assert json.loads(json.dumps(report.charts, allow_nan=False)) == report.charts
    stats = Stats.model_validate(report.stats)
    values = {name: spec["data"]["values"] for name, spec in report.charts.items()}
    assert {row["status"]: row["count"] for row in values["status"]} == stats.by_status
    for name in ("modules", "priority", "executor"):
        assert sum(row["count"] for row in values[name]) == stats.total
    assert sum(row["count"] for row in values["severity"]) == stats.failing
    assert sum(row["count"] for row in values["duration"]) == stats.durations.of
    assert sum(row["count"] for row in values["pareto"]) == stats.failing
    assert values["pareto"][-1]["cumulative"] == 100
    assert values["trend"][-2]["percent"] == stats.rates.pass_rate_of_executed.percent


def test_what_has_no_data_has_no_chart() -> None:
    """No cases, no charts; no durations, no histogram."""
    assert build_charts(compute_stats((), ()), (), "en") == {}
    bare = [one.model_copy(update={"duration_seconds": None, "executor": ""}) for one in document(count=5).cases]
    charts = build_charts(compute_stats(bare, ()).model_dump(mode="json"), (), "en")
    assert {"duration", "executor", "pareto", "trend"}.isdisjoint(charts)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_chart_is_a_picture_with_name_and_description_and_nothing_that_acts(lang: Any) -> None:
    """No script, link, style or address; words take the colour around them."""
    for name, spec in document(lang).charts.items():
        root = ElementTree.fromstring(draw(spec))
        assert root.tag == f"{SVG}svg"
        assert root.get("role") == "img"
        assert [root[0].tag, root[1].tag] == [f"{SVG}title", f"{SVG}desc"]
        assert root[0].text == spec["usermeta"]["title"]
        assert root.get("aria-labelledby") == f"chart-{name}-title chart-{name}-desc"
        tags = {element.tag.removeprefix(SVG) for element in root.iter()}
        assert tags <= {"svg", "title", "desc", "g", "path", "line", "text", "rect", "tspan", "defs", "clipPath"}
        attributes = {key.lower() for element in root.iter() for key in element.attrib}
        assert not any(key.startswith("on") or "href" in key or key == "style" for key in attributes)
        fills = {element.get("fill") for element in root.iter(f"{SVG}text")}
        assert fills <= {"currentColor", "#1c2026", "#ffffff"}
        assert len(list(root.iter(f"{SVG}path"))) > 3


def test_hostile_names_are_words_in_a_picture(report: ReportDocument) -> None:
    """Of modules and of clusters; also those that repeat when they are cut."""
    stats = Stats.model_validate(report.stats)
    names = [*NASTY, "x" * 300, "x" * 301]
    modules = tuple(stats.modules[0].model_copy(update={"name": name}) for name in names)
    clusters = [report.clusters[0].model_copy(update={"name": name}) for name in names]
    charts = build_charts(stats.model_copy(update={"modules": modules}), clusters, "en")
    for name in ("modules", "pareto"):
        root = ElementTree.fromstring(draw(charts[name]))
        words = [element.text or "" for element in root.iter(f"{SVG}text")]
        assert any("<script>alert(1)" in word for word in words)
        assert all("\x00" not in word and "\u202e" not in word for word in words)
        labels = {row[next(iter(charts[name]["usermeta"]["columns"]))] for row in charts[name]["data"]["values"]}
        assert len(labels) == MOST_BARS


def test_a_chart_that_cannot_be_drawn_is_a_table(report: ReportDocument, monkeypatch: pytest.MonkeyPatch) -> None:
    """Because the spec is broken, because the package is not there, or because the drawing holds what it may not."""
    spec = report.charts["status"]
    assert draw({**spec, "layer": [{"mark": "no such mark"}]}) == as_table(spec)
    monkeypatch.setattr("headrace.apps.report.charts.drawing._drawn", lambda _: "<svg><script>1</script></svg>")
    assert draw(spec).startswith('<div class="chart-table">')
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    table = draw(spec)
    assert f"<td>{report.stats['by_status']['failed']}</td>" in table
    assert "<script" not in table


def test_names_beside_an_axis_fit_however_wide_their_signs_are() -> None:
    """Signs of twice the width count twice."""
    assert safe_name("a" * 20) == "a" * 20
    assert width_of(safe_name("图" * 90)) <= 200
    assert safe_name("图" * 90).endswith("…")
    assert safe_name("a\x00b\n c") == "a b c"


#: How people with no red, and with no green receptors see linear light (Machado, Oliveira and Fernandes, 2009).
SIGHTS = (
    ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
)


@pytest.mark.parametrize("sight", SIGHTS)
def test_colours_of_statuses_are_told_apart_by_everybody(sight: tuple[tuple[float, ...], ...]) -> None:
    """Two colours are at least 25 apart in CIELAB, where 2 can be noticed."""
    seen = [_lab([sum(a * b for a, b in zip(row, _linear(one), strict=True)) for row in sight])
            for one in STATUS_COLOURS.values()]  # fmt: skip
    assert min(math.dist(one, other) for one, other in combinations(seen, 2)) > 25


def _linear(colour: str) -> list[float]:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def _lab(linear: list[float]) -> tuple[float, float, float]:
    red, green, blue = (max(0.0, min(1.0, one)) for one in linear)
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089
    x, y, z = (one ** (1 / 3) if one > 0.008856 else 7.787 * one + 16 / 116 for one in (x, y, z))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)
