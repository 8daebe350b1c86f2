"""JSONL: one line per document, everything that is known of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from headrace.apps.papers.output.model import Report, Row
from headrace.apps.sheets.files import written_whole

#: Many readers take these for the end of a line; within JSON they can only stand in texts.
_NOT_LINE_ENDS = {ord(char): f"\\u{ord(char):04x}" for char in "\x85\u2028\u2029"}


def write_jsonl(path: Path, report: Report) -> None:
    """Write a report's documents in the order of their names; the file appears whole or not at all."""
    with written_whole(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for row in report.rows:
            file.write(json.dumps(_line(row), ensure_ascii=False).translate(_NOT_LINE_ENDS) + "\n")


def _line(row: Row) -> dict[str, Any]:
    line: dict[str, Any] = {
        "document_id": row.document_id,
        "name": row.name,
        "duplicates": list(row.duplicates),
        "state": row.state,
    }
    if row.result is None:
        return {**line, "reason": row.reason, "message": row.message}
    # The row knows the file's name of today; the result may have been made under another.
    return {**line, **{key: value for key, value in row.result.to_json().items() if key not in line}}
