"""The smallest form of the report: figures, failed cases and links, for when the page cannot be made.

It needs no package, no template and no script.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import Any

from headrace.apps.report.data.document import ReportDocument
from headrace.apps.report.output.notices import notices_of
from headrace.apps.report.output.signs import clean
from headrace.apps.report.output.tables import figures
from headrace.apps.report.output.tables.base import Table
from headrace.apps.report.output.view import View
from headrace.apps.report.output.wording import percent

#: Files that a report may consist of besides.
FILES = ("report.xlsx", "report.json")
_MOST_CHARS = 200
_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'"


def render_plain(document: ReportDocument) -> str:
    """Return figures, failed cases and links as HTML."""
    view = View(document)
    lang = "zh-CN" if document.lang == "zh" else "en"
    head = (
        f'<!doctype html><html lang="{lang}"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<meta name="color-scheme" content="light dark"><title>{_text(document.title)}</title></head><body>'
    )
    return head + "\n".join(_body(view)) + "</body></html>\n"


def _body(view: View) -> Iterator[str]:
    word, stats = view.word, view.stats
    yield f"<h1>{_text(view.document.title)}</h1><p>{_text(word('plain.note'))}</p>"
    yield f"<p><strong>{_text(word(f'verdict.{stats.gate.verdict}'))}</strong></p>"
    for notice in notices_of(view):
        lines = "".join(f"<li>{_text(line)}</li>" for line in (*notice.lines, notice.command) if line)
        yield f"<p>{_text(notice.headline)}</p><ul>{lines}</ul>"
    yield "<p>" + " · ".join(f'<a href="{name}">{name}</a>' for name in FILES) + "</p>"
    tables = (figures.criteria(view), figures.rates(view), figures.statuses(view),
              figures.splits(view, "modules", "module", stats.modules))  # fmt: skip
    for table in tables:
        yield _table(view, table)
    yield f"<h2>{_text(word('section.failed'))}</h2><ul>"
    for case in view.failing:
        status = word.label("status", case.status)
        said = f"{case.case_id} · {status} · {view.module(case.case_id)} · {case.title}"
        yield f"<li>{_text(said[:_MOST_CHARS])}</li>"
    yield "</ul>"


def _table(view: View, table: Table) -> str:
    head = "".join(f'<th scope="col">{_text(view.word(f"column.{column.key}"))}</th>' for column in table.columns)
    rows = "".join(f"<tr>{_cells(view, table, row)}</tr>" for row in table.rows)
    return f'<table id="table-{table.name}"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


def _cells(view: View, table: Table, row: Sequence[Any]) -> str:
    shown = []
    for column, value in zip(table.columns, row, strict=True):
        told = percent(value) if column.kind == "percent" else value
        shown.append(view.word.label("status", told) if column.kind == "status" else told)
    return "".join(f"<td>{_text(value)}</td>" for value in shown)


def _text(words: object) -> str:
    return html.escape(clean(words))
