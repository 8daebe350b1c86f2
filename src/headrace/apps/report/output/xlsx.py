"""The report as a workbook, and the normalised cases alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from xlsxwriter.worksheet import Worksheet

from headrace.apps.report.data.cases import Ingested
from headrace.apps.report.data.content import Content
from headrace.apps.report.data.document import InputFile, Lang, ReportDocument, RunFacts
from headrace.apps.report.data.modules import Assignment
from headrace.apps.report.output.book import Book, targets_of
from headrace.apps.report.output.book_charts import add_charts
from headrace.apps.report.output.notices import notices_of
from headrace.apps.report.output.tables import cases, figures, findings, quality, trend
from headrace.apps.report.output.tables.base import Table
from headrace.apps.report.output.view import View
from headrace.apps.sheets.cells import safe_text
from headrace.apps.sheets.files import written_whole

#: Sheets in their order, by the keys of their names.
SHEETS = ("summary", "modules", "cases", "failed", "defects", "clusters", "trend", "quality", "run")
_CHARTS_AT = 13


def write_xlsx(path: Path, document: ReportDocument) -> None:
    """Write a report; the file appears whole or not at all."""
    with written_whole(path) as temporary:
        book = _book(temporary, View(document))
        tables = _tables(book.view)
        # The first sheet shows charts of the others: it is made first and filled last.
        first = book.add_sheet("summary")
        _modules(book)
        book.write_alone("cases", tables["cases"], compact=True)
        for key in ("failed", "defects", "clusters"):
            book.write_alone(key, tables[key])
        _trend(book)
        _quality(book, quality.completeness(book.view))
        book.write_alone("run", quality.run_facts(book.view))
        _summary(book, first)
        book.workbook.close()


def write_cases_xlsx(path: Path, ingested: Ingested, assignments: Sequence[Assignment], lang: Lang = "en") -> None:
    """Write the normalised cases, and what was wrong with the rows that they came from."""
    document = ReportDocument(
        lang=lang,
        title="",
        input=InputFile(name="", sha256=""),
        run=RunFacts(job_id="", created_at="", tool="", options={}),
        validation=ingested.validation,
        stats={},
        charts={},
        content=Content(modules={}),
        cases=ingested.cases,
        assignments=tuple(assignments),
        issues=ingested.issues,
    )
    with written_whole(path) as temporary:
        book = _book(temporary, View(document))
        book.write_alone("cases", cases.all_cases(book.view), compact=True)
        _quality(book)
        book.workbook.close()


def _book(path: Path, view: View) -> Book:
    book = Book(path, view)
    book.targets["case"] = targets_of(view.word("sheet.cases"), list(view.cases))
    largest = sorted(view.document.clusters, key=lambda one: -one.size)
    book.targets["cluster"] = targets_of(view.word("sheet.clusters"), [one.cluster_id for one in largest])
    return book


def _tables(view: View) -> dict[str, Table]:
    made = (cases.all_cases(view), cases.failed_cases(view), findings.defects(view), findings.clusters(view))
    return {table.name: table for table in made}


def _modules(book: Book) -> None:
    view, stats, word = book.view, book.view.stats, book.view.word
    sheet = book.add_sheet("modules")
    table = figures.splits(view, "modules", "module", stats.modules)
    row = book.write(sheet, table) + 1
    for name in ("severity", "defect_severity"):
        crosses = getattr(stats, f"{name}_by_module")
        if crosses:
            row = book.write(sheet, figures.severities(view, name, crosses), row, heading=word(f"sub.{name}")) + 1
    book.finish(sheet, table)


def _trend(book: Book) -> None:
    sheet, word = book.add_sheet("trend"), book.view.word
    tables = trend.trend_tables(book.view)
    if not tables:
        sheet.write_string(0, 0, word("text.no_previous"))
        return
    row = 0
    for table in tables:
        row = book.write(sheet, table, row, heading=word(f"sub.{table.name}")) + 1
    sheet.set_column(0, 1, 26)
    sheet.set_column(2, 8, 18)


def _quality(book: Book, *first: Table) -> None:
    sheet, word, row = book.add_sheet("quality"), book.view.word, 0
    for line in book.view.document.validation.warnings:
        sheet.write_string(row, 0, safe_text(line))
        row += 1
    for table in (*first, quality.sheets(book.view), quality.issues(book.view)):
        row = book.write(sheet, table, row, heading=word(f"sub.{table.name}")) + 1
    sheet.set_column(0, 0, 26)
    sheet.set_column(1, 8, 18)


def _summary(book: Book, sheet: Worksheet) -> None:
    view, stats, word = book.view, book.view.stats, book.view.word
    row = _head(book, sheet)
    tables = [
        ("criteria", figures.criteria(view)),
        ("rates", figures.rates(view)),
        ("statuses", figures.statuses(view)),
        ("priorities", figures.splits(view, "priorities", "priority", stats.priorities)),
        ("executors", figures.splits(view, "executors", "executor", stats.executors)),
        ("days", figures.splits(view, "days", "day", stats.days)),
        ("durations", figures.durations(view)),
        ("measures", figures.measures(view)),
    ]
    for name, table in tables:
        heading = word("section.criteria") if name == "criteria" else word(f"sub.{name}")
        row = book.write(sheet, table, row, heading=heading) + 1
    sheet.set_column(0, 0, 34)
    sheet.set_column(1, 9, 13)
    add_charts(book, sheet, _CHARTS_AT)


def _head(book: Book, sheet: Worksheet) -> int:
    """Title, verdict, and what a reader must know before the figures; returns the row after them."""
    view, word, styles = book.view, book.view.word, book.styles
    verdict = view.stats.gate.verdict
    sheet.write_string(0, 0, safe_text(view.document.title), styles["title"])
    sheet.write_string(1, 0, f"{word(f'verdict.mark.{verdict}')}: {word(f'verdict.{verdict}')}", styles[verdict])
    row = 3
    for notice in notices_of(view):
        sheet.write_string(row, 0, notice.headline, styles["heading"])
        lines = [line for line in (*notice.lines, f"{notice.advice} {notice.command}".strip()) if line]
        for number, line in enumerate(lines, start=row + 1):
            sheet.write_string(number, 0, safe_text(line))
        row += len(lines) + 2
    for name in ("objective_and_scope", "conclusions", "risks"):
        for sentence in getattr(view.document.content, name):
            sheet.write_string(row, 0, safe_text(f"{word(f'sub.{name}')}: {sentence.text}"))
            row += 1
    return row + 1
