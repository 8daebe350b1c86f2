"""The report of a run: one row per document, the problems, and the record of what made them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from headrace import BatchItem, __version__
from headrace.apps.papers.documents import FoundDocument
from headrace.apps.papers.orphans import Orphans
from headrace.apps.papers.output.forms import write_forms
from headrace.apps.papers.output.model import Problem, Report, Row, RunRecord
from headrace.apps.papers.page.texts import Texts
from headrace.apps.papers.record import askings
from headrace.apps.papers.result import Cell, DocumentResult, Status
from headrace.apps.papers.rows import row_name
from headrace.apps.papers.run import Run
from headrace.apps.papers.template import Template
from headrace.model.batch import BatchView


def build_report(
    run: Run, items: Mapping[str, BatchItem], view: BatchView | None = None, *, orphans: Orphans | None = None
) -> Report:
    """Join the selection of a run with what became of each document; `view` knows when it began and ended.

    `orphans`: calls that may have been paid for nothing; None where nobody looked.
    """
    rows = tuple(_row(document, items.get(document.document_id)) for document in run.selection.documents)
    record = replace(_record(run, rows, view), orphans=orphans)
    return Report(run.template, rows, _problems(run, rows), record)


def _row(document: FoundDocument, item: BatchItem | None) -> Row:
    row = Row(document.document_id, document.name, document.duplicates, path=document.path)
    if item is None:
        return row.ended("pending", "pending", "has not been extracted yet; run the command again")
    if item.error is not None or item.result is None:
        error = item.error
        return row.ended("error", error.kind if error else item.status, error.message if error else "")
    if "unreadable" in item.result:
        unreadable = item.result["unreadable"]
        return row.ended("error", unreadable["reason"], unreadable["message"], unreadable=True)
    return row.extracted(DocumentResult.from_json(item.result["result"]))


def _problems(run: Run, rows: tuple[Row, ...]) -> tuple[Problem, ...]:
    ours = [Problem(row.name, row.reason, row.message) for row in rows if row.result is None]
    files = [Problem(problem.name, problem.reason.value, problem.message) for problem in run.selection.problems]
    repeats = [
        Problem(name, "duplicate", f"has the same content as {row.name}, which stands for it")
        for row in rows
        for name in row.duplicates
    ]
    extracted = [problem for row in rows for problem in _of_result(run.template, row)]
    return (*ours, *files, *repeats, *extracted)


def _of_result(template: Template, row: Row) -> Iterator[Problem]:
    """What a person should know of an extracted document."""
    if row.result is None:
        return
    for cell in row.result.cells():
        field = template.field_at(cell.group, cell.field)
        if field.required and cell.found.status not in (Status.FOUND, Status.NEEDS_REVIEW):
            message = f"{_named(template, row.result, cell)} is required and its status is {cell.found.status}"
            yield Problem(row.name, "required_field_missing", message)
    for group, note in row.result.row_notes.items():
        yield Problem(row.name, "rows", f"{group}: {note}")
    disputed = row.result.count(Status.NEEDS_REVIEW)
    if disputed:
        fields = "1 field" if disputed == 1 else f"{disputed} fields"
        yield Problem(row.name, "disagreement", f"two extractions differ in {fields}; decide between them")


def _named(template: Template, result: DocumentResult, cell: Cell) -> str:
    if not cell.group:
        return cell.field
    name = row_name(template.group(cell.group), result.rows[cell.group][cell.row - 1])
    return f"{cell.field} of {cell.group} {cell.row}" + (f" ({name})" if name else "")


def _record(run: Run, rows: tuple[Row, ...], view: BatchView | None) -> RunRecord:
    results = [row.result for row in rows if row.result is not None]
    asked = askings(results)
    return RunRecord(
        tool=f"headrace {__version__}",
        run_id=run.id,
        batch_id=str(run.batch.id),
        written_at=datetime.now(UTC),
        models=tuple(sorted({asking.model for asking in asked})),
        prompt_versions=tuple(sorted({asking.prompt_version for asking in asked})),
        readers=tuple(sorted({result.reader for result in results})),
        input_files=len(rows) + run.selection.duplicate_count + len(run.selection.problems),
        duplicates=run.selection.duplicate_count,
        skipped=len(run.selection.problems),
        begun_at=view.created_at.astimezone(UTC) if view is not None else None,
        ended_at=view.closed_at.astimezone(UTC) if view is not None and view.closed_at is not None else None,
        asked=asked,
        parameters={
            "folder": str(run.options.folder),
            "template": str(run.options.template),
            "key": run.options.key,
            "dual": run.options.dual,
            "pilot": run.options.pilot,
        },
    )


def write_report(report: Report, out: Path, *, texts: Texts | None = None) -> tuple[Path, ...]:
    """Write the results in all their forms, and `run.json`, into the folder `out`; return the paths."""
    out.mkdir(parents=True, exist_ok=True)
    return write_forms(report, out, texts=texts)
