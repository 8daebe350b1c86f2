"""clean.xlsx: a workbook as one would wish it, in English."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from headrace.apps.report.samples.drawing import Draw
from headrace.apps.report.samples.subjects import PEOPLE_EN, SUBJECTS
from headrace.apps.report.samples.truth import Known, Truth
from headrace.apps.report.samples.workbook import new_workbook

HEADER = (
    *("Test Case ID", "Title", "Module", "Priority", "Preconditions", "Steps", "Expected Result", "Actual Result"),
    *("Status", "Severity", "Executed By", "Execution Date", "Duration (s)", "Environment", "Bug ID", "Comments"),
)
_STATUSES = {"Passed": 80, "Failed": 13, "Blocked": 4, "Skipped": 3}
_SHEETS = ("Web", "API")
_EACH = 60


def write_clean(path: Path, seed: int = 1) -> Truth:
    """Write the workbook: two sheets of cases and one of figures. Return what is in it."""
    draw, truth = Draw(seed), Truth()
    with new_workbook(path) as book:
        day = book.add_format({"num_format": "yyyy-mm-dd hh:mm"})
        bold = book.add_format({"bold": True})
        for name in _SHEETS:
            sheet = book.add_worksheet(name)
            sheet.write_row(0, 0, HEADER, bold)
            sheet.freeze_panes(1, 0)
            for number in range(1, _EACH + 1):
                known, values = _case(draw, name, number)
                truth.cases.append(known)
                for column, value in enumerate(values):
                    _write(sheet, (number, column), value, day)
        notes = book.add_worksheet("Release notes")
        notes.write(0, 0, "Release 4.2: test run of March 2026")
        notes.write(2, 0, "Nightly build, staging")
    return truth


def _write(sheet: Any, place: tuple[int, int], value: object, day: Any) -> None:
    if isinstance(value, datetime):
        sheet.write_datetime(*place, value, day)
    elif isinstance(value, int | float):
        sheet.write_number(*place, value)
    elif value:
        sheet.write_string(*place, str(value))


def _case(draw: Draw, sheet: str, number: int) -> tuple[Known, list[object]]:
    at = draw.number(0, len(SUBJECTS) - 1)
    subject = SUBJECTS[at]
    point = draw.one(subject.points_en)
    status = draw.weighted(_STATUSES)
    priority = f"P{draw.number(0, 3)}"
    failure, filling = draw.failure(at), draw.filling()
    fails = status in ("Failed", "Blocked")
    known = Known(status.lower(), subject.en, priority, failure.severity if fails else "")
    actual = failure.en.format(**filling) if fails else "As expected" if status == "Passed" else ""
    values: list[object] = [
        *(f"{subject.prefix}-{sheet}-{number:03}", f"{point} ({sheet})", subject.en, priority),
        *("A customer with an account", f"1. Open the page\n2. {point}", "It works and is shown to the customer"),
        *(actual, status, failure.severity.title() if fails else "", draw.one(PEOPLE_EN), draw.moment()),
        *(draw.number(5, 240), "staging", f"SHOP-{draw.number(100, 999)}" if fails else ""),
        failure.error.format(**filling).partition("\n")[0] if fails else "",
    ]
    return known, values
