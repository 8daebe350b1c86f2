"""All the forms in which the results of a run are written."""

from __future__ import annotations

from pathlib import Path

from headrace.apps.papers.output.jsonl import write_jsonl
from headrace.apps.papers.output.model import Report
from headrace.apps.papers.output.table import write_csv
from headrace.apps.papers.output.xlsx import write_xlsx


def write_results(report: Report, out: Path) -> tuple[Path, ...]:
    """Write every form into the folder `out`; return the paths."""
    workbook, table, lines = out / "results.xlsx", out / "results.csv", out / "results.jsonl"
    write_xlsx(workbook, report)
    write_csv(table, report)
    write_jsonl(lines, report)
    return (workbook, table, lines)
