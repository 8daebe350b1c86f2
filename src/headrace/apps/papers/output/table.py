"""CSV in long form: one line for every value, for statistics programs and spreadsheets alike.

The files begin with a byte order mark: without it Excel takes UTF-8 for another encoding and spoils every letter beyond
ASCII. R, pandas and spreadsheet programs skip it; other programs read the encoding `utf-8-sig`. Lines end with CR LF,
and what holds a line break, a comma or a quotation mark is quoted (RFC 4180), so a line of the table may be several of
the file.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from headrace.apps.papers.output.cells import safe_value
from headrace.apps.papers.output.lines import ValueLine, lines_of
from headrace.apps.papers.output.model import Report
from headrace.apps.papers.result import Candidate, Finding, Status
from headrace.apps.papers.template import Value
from headrace.apps.sheets.files import written_whole

#: Programs rely on this order; new columns come last.
COLUMNS = (
    "document_id", "document", "group", "row", "row_name", "field", "type", "unit", "value", "status", "quote", "page",
    "char_start", "char_end", "section", "alignment", "agreement", "first_value", "first_quote", "first_page",
    "second_value", "second_quote", "second_page", "note", "model", "prompt_version", "template", "template_version",
)  # fmt: skip

ENCODING = "utf-8-sig"

Cells = Sequence[Value | int | None]


def write_csv(path: Path, report: Report) -> None:
    """Write every value of a report as a line; the file appears whole or not at all."""
    write_table(path, COLUMNS, (_cells(line) for line in lines_of(report.template, report.rows)))


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Cells]) -> None:
    """Write a table as CSV that spreadsheet programs read rightly; the file appears whole or not at all."""
    with written_whole(path) as temporary, temporary.open("w", encoding=ENCODING, newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows([safe_value(cell) for cell in cells] for cells in rows)


def _cells(line: ValueLine) -> Cells:
    found, result, place = line.found, line.result, line.place
    both: tuple[Candidate | None, Candidate | None] = line.candidates or (None, None)
    asked = result.asked
    return (
        place.document_id, line.name, place.group, place.row or None, line.row_name, place.field,
        line.field.type, line.field.unit, found.value, found.status.value,
        found.quote, found.page, found.char_start, found.char_end, found.section, alignment_of(found),
        line.agreement, *_said(both[0]), *_said(both[1]), found.note,
        "; ".join(asking.model for asking in asked) or result.model,
        "; ".join(asking.prompt_version for asking in asked) or result.prompt_version,
        result.template, result.template_version,
    )  # fmt: skip


def alignment_of(found: Finding) -> str:
    """How a found value agrees with its quote; nothing for a value that is not found."""
    return found.alignment.value if found.status is Status.FOUND else ""


def _said(candidate: Candidate | None) -> Cells:
    if candidate is None:
        return (None, None, None)
    value = candidate.value if candidate.value is not None else f"[{candidate.status}]"
    return (value, candidate.quote, candidate.page)
