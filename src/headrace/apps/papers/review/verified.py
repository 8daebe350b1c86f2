"""The files of verified values: what was extracted of each value, and what a person decided, side by side."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from headrace.apps.papers.output.cells import safe_value
from headrace.apps.papers.output.lines import Place, ValueLine
from headrace.apps.papers.output.model import Verification, iso_utc
from headrace.apps.papers.output.table import ENCODING, Cells
from headrace.apps.papers.result import Finding
from headrace.apps.papers.review.decisions import Answer, Decision
from headrace.apps.sheets.files import written_whole

JSONL, TABLE = "verified.jsonl", "verified.csv"
#: Programs rely on this order; new columns come last.
COLUMNS = (
    "document_id", "document", "group", "row", "row_name", "field", "type", "unit", "review", "verified_says",
    "verified_value", "comment", "reviewer", "decided_at", "status", "value", "quote", "page", "char_start", "char_end",
    "section", "first_value", "second_value",
)  # fmt: skip

Decisions = Mapping[Place, Decision]


def write_verified(out: Path, lines: Sequence[ValueLine], decisions: Decisions) -> tuple[Path, ...]:
    """Write `verified.jsonl` and `verified.csv` into the folder `out`, unless they say the same already."""
    paths = (out / JSONL, out / TABLE)
    write_if_changed(paths[0], "".join(_jsonl(lines, decisions)).encode())
    write_if_changed(paths[1], _table(lines, decisions))
    return paths


def write_if_changed(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; one that holds just that is left alone."""
    if path.exists() and path.read_bytes() == content:
        return
    with written_whole(path) as temporary:
        temporary.write_bytes(content)


def verification_of(decisions: Decisions) -> Verification:
    """Count decisions; every value is in one count.

    >>> verification_of({Place("d", "", 0, "size"): Decision(Answer.REJECTED, reviewer="AB")}).rejected
    1
    """
    answers = [decision.answer for decision in decisions.values()]
    taken = [decision for decision in decisions.values() if decision.answer is not Answer.OPEN]
    moments = sorted(decision.decided_at for decision in taken if decision.decided_at is not None)
    return Verification(
        accepted=answers.count(Answer.ACCEPTED),
        edited=answers.count(Answer.EDITED),
        rejected=answers.count(Answer.REJECTED),
        still_open=answers.count(Answer.OPEN),
        by=tuple(sorted({decision.reviewer for decision in taken})),
        first_at=moments[0] if moments else None,
        last_at=moments[-1] if moments else None,
    )


def extracted_json(line: ValueLine) -> dict[str, Any]:
    """What was extracted, JSON-able: the value with its evidence, and both candidates where there are two."""
    kept = {"value", "status", "quote", "page", "char_start", "char_end", "section", "note", "agreed"}
    extracted = line.found.model_dump(mode="json", include=kept)
    candidates = [candidate.model_dump(mode="json", include=kept | {"by"}) for candidate in line.found.candidates]
    return {**extracted, "candidates": candidates}


def _jsonl(lines: Sequence[ValueLine], decisions: Decisions) -> Iterator[str]:
    for line in lines:
        told = {
            **asdict(line.place),
            "document": line.name,
            "digest": line.digest,
            "extracted": extracted_json(line),
            "review": decisions[line.place].to_json(),
        }
        yield json.dumps(told, ensure_ascii=True) + "\n"


def _table(lines: Sequence[ValueLine], decisions: Decisions) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    writer.writerows([safe_value(cell) for cell in _cells(line, decisions[line.place])] for line in lines)
    return text.getvalue().encode(ENCODING)


def _cells(line: ValueLine, decision: Decision) -> Cells:
    found, place = line.found, line.place
    first, second = line.candidates or (None, None)
    return (
        place.document_id, line.name, place.group, place.row or None, line.row_name, place.field,
        line.field.type, line.field.unit, decision.answer.value, decision.says,
        decision.value, decision.comment, decision.reviewer, iso_utc(decision.decided_at),
        found.status.value, found.value, found.quote, found.page, found.char_start, found.char_end, found.section,
        _said(first), _said(second),
    )  # fmt: skip


def _said(candidate: Finding | None) -> Any:
    if candidate is None:
        return None
    return f"[{candidate.status}]" if candidate.value is None else candidate.value
