"""All the forms in which the results of a run are written, and the sheets to verify them in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from headrace.apps.papers.output.jsonl import write_jsonl
from headrace.apps.papers.output.lines import Place, lines_of
from headrace.apps.papers.output.model import Report
from headrace.apps.papers.output.table import write_csv
from headrace.apps.papers.output.xlsx import write_xlsx
from headrace.apps.papers.page.html import write_page
from headrace.apps.papers.page.texts import Texts
from headrace.apps.papers.record import run_json
from headrace.apps.papers.review.decisions import Decision
from headrace.apps.papers.review.lock import locked
from headrace.apps.papers.review.log import ReviewLog
from headrace.apps.papers.review.sheets import write_sheets
from headrace.apps.papers.review.verified import verification_of, write_verified
from headrace.apps.sheets.files import written_whole


def write_forms(report: Report, out: Path, *, texts: Texts | None = None) -> tuple[Path, ...]:
    """Write every form into the folder `out`; return the paths, the record of the run last.

    `texts` keeps the texts that the values were extracted from; without it the files are read again. What people
    decided before stays decided, as far as the values are still the same.
    """
    with locked(out):
        lines, log = tuple(lines_of(report.template, report.rows)), ReviewLog(out)
        decisions = log.decisions(lines)
        report = replace(report, record=replace(report.record, verification=verification_of(decisions)))
        files = _write_results(report, out, texts=texts or Texts(), decisions=decisions)
        files += write_sheets(out, report.record.run_id, lines, decisions)
        if log.exists():
            files += write_verified(out, lines, decisions)
        return (*files, _write_record(report, out))


def _write_results(report: Report, out: Path, *, texts: Texts, decisions: Mapping[Place, Decision]) -> tuple[Path, ...]:
    workbook, table, lines, page = (out / f"results.{suffix}" for suffix in ("xlsx", "csv", "jsonl", "html"))
    write_xlsx(workbook, report)
    write_csv(table, report)
    write_jsonl(lines, report)
    write_page(page, report, texts=texts, decisions=decisions)
    return (workbook, table, lines, page)


def _write_record(report: Report, out: Path) -> Path:
    path = out / "run.json"
    with written_whole(path) as temporary:
        temporary.write_text(json.dumps(run_json(report), ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    return path
