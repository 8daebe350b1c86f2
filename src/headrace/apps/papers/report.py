"""The report of a run: one row per document, the problems, and the record of what made them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from headrace import BatchItem, __version__
from headrace.apps.papers.documents import FoundDocument
from headrace.apps.papers.output.jsonl import write_jsonl
from headrace.apps.papers.output.model import Problem, Report, Row, RunRecord
from headrace.apps.papers.output.xlsx import write_xlsx
from headrace.apps.papers.result import DocumentResult, Status
from headrace.apps.papers.run import Run


def build_report(run: Run, items: Mapping[str, BatchItem]) -> Report:
    """Join the selection of a run with what became of each document."""
    rows = tuple(_row(document, items.get(document.document_id)) for document in run.selection.documents)
    return Report(run.template, rows, _problems(run, rows), _record(run, rows))


def _row(document: FoundDocument, item: BatchItem | None) -> Row:
    row = Row(document.document_id, document.name, document.duplicates)
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
    return (*ours, *files, *repeats, *_missing(run, rows))


def _missing(run: Run, rows: tuple[Row, ...]) -> list[Problem]:
    required = [field.name for field in run.template.fields if field.required]
    return [
        Problem(
            row.name, "required_field_missing", f"{name} is required and its status is {result.fields[name].status}"
        )
        for row in rows
        if (result := row.result) is not None
        for name in required
        if result.fields[name].status is not Status.FOUND
    ]


def _record(run: Run, rows: tuple[Row, ...]) -> RunRecord:
    results = [row.result for row in rows if row.result is not None]
    return RunRecord(
        tool=f"headrace {__version__}",
        run_id=run.id,
        batch_id=str(run.batch.id),
        written_at=datetime.now(UTC),
        models=tuple(sorted({result.model for result in results})),
        prompt_versions=tuple(sorted({result.prompt_version for result in results})),
        readers=tuple(sorted({result.reader for result in results})),
        input_files=len(rows) + run.selection.duplicate_count + len(run.selection.problems),
        duplicates=run.selection.duplicate_count,
        skipped=len(run.selection.problems),
    )


def write_report(report: Report, out: Path) -> tuple[Path, ...]:
    """Write `results.xlsx` and `results.jsonl` into the folder `out`; return their paths."""
    out.mkdir(parents=True, exist_ok=True)
    files = (out / "results.xlsx", out / "results.jsonl")
    write_xlsx(files[0], report)
    write_jsonl(files[1], report)
    return files
