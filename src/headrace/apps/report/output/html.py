"""One file of HTML that needs nothing else: no network, no fonts, no other file.

Its content security policy lets the one script and the one style of ours run, known by their hashes, and nothing else.
So even a hole in the escaping would give nobody a script, an image, or a connection.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from headrace.apps.report.charts import draw
from headrace.apps.report.charts.building import CHARTS
from headrace.apps.report.data.document import ReportDocument
from headrace.apps.report.output.markup import Cells, figure
from headrace.apps.report.output.notices import notices_of
from headrace.apps.report.output.signs import clean
from headrace.apps.report.output.tables import cases, figures, findings, quality, trend
from headrace.apps.report.output.tables.base import Table
from headrace.apps.report.output.view import View
from headrace.apps.report.output.wording import percent

_PAGE = Path(__file__).parent / "page"
_POLICY = (
    "default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data:; base-uri 'none'; "
    "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
#: Sections in the order of the page.
SECTIONS = (
    "summary",
    "analysis",
    "charts",
    "modules",
    "clusters",
    "failed",
    "defects",
    "cases",
    "trend",
    "quality",
    "run",
)


def render_html(document: ReportDocument) -> str:
    """Return the report as one page."""
    view = View(document)
    script, style = _own("page.js"), _own("page.css")
    tables = _tables(view)
    return (
        _environment()
        .get_template("report.html")
        .render(
            view=view,
            document=document,
            stats=view.stats,
            word=view.word,
            cells=Cells(view),
            tables=tables,
            sections=SECTIONS,
            statuses=figures.STATUSES,
            counted=findings.counted,
            notices=notices_of(view),
            charts=_charts(document),
            script=Markup(script),  # noqa: S704 - files of ours
            style=Markup(style),  # noqa: S704
            policy=_POLICY.format(script=_hash(script), style=_hash(style)),
        )
    )


def _tables(view: View) -> dict[str, Table]:
    stats = view.stats
    found = [
        figures.criteria(view),
        figures.splits(view, "modules", "module", stats.modules),
        figures.splits(view, "priorities", "priority", stats.priorities),
        figures.splits(view, "executors", "executor", stats.executors),
        figures.severities(view, "severity", stats.severity_by_module),
        figures.severities(view, "defect_severity", stats.defect_severity_by_module),
        figures.measures(view),
        cases.failed_cases(view),
        findings.defects(view),
        cases.all_cases(view),
        quality.completeness(view),
        quality.sheets(view),
        quality.issues(view),
        quality.run_facts(view),
        *trend.trend_tables(view),
    ]
    return {table.name: table.for_page() for table in found}


def _charts(document: ReportDocument) -> list[dict[str, Any]]:
    """The drawings are ours: `draw` escapes every word in them, and refuses all that could do something."""
    return [
        {"name": name, "title": spec["usermeta"]["title"], "drawing": Markup(draw(spec))}  # noqa: S704
        for name, spec in ((name, document.charts[name]) for name in CHARTS if name in document.charts)
    ]


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("headrace.apps.report.output", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finished,
    )
    environment.filters |= {"percent": percent, "figure": figure}
    return environment


def _finished(value: object) -> object:
    """Words of a file may hold what HTML cannot; markup of ours does not."""
    return value if hasattr(value, "__html__") else clean(value)


def _own(name: str) -> str:
    return (_PAGE / name).read_text(encoding="utf-8").replace("\r\n", "\n")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
