"""How right an extraction is: its values against a sheet of what a person read in the same documents.

The sheet is CSV with the columns `document`, `field`, `value` and, for rows, `row`: a field of a group is
`group.field`, and `row` is what the key of the row says. An empty value means that the document does not say.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from headrace.apps.papers.errors import GoldError
from headrace.apps.papers.locate import align_text
from headrace.apps.papers.output.model import Row
from headrace.apps.papers.result import Alignment, DocumentResult, FieldResult, Status
from headrace.apps.papers.rows import row_name
from headrace.apps.papers.sameness import identity, same_value
from headrace.apps.papers.template import Template, TemplateField, Value
from headrace.apps.papers.values import UnfitValueError, fit
from headrace.apps.sheets.files import written_whole

MAX_BYTES = 20 * 1024 * 1024
_COLUMNS = ("document", "field", "value")


class Verdict(StrEnum):
    """What became of a value that a person knows."""

    #: Found, and it agrees.
    RIGHT = "right"
    #: The document does not say, and nothing was found.
    RIGHTLY_NOT_FOUND = "rightly_not_found"
    #: Found, and it differs.
    WRONG = "wrong"
    #: The document says it, and nothing was found.
    MISSED = "missed"
    #: The document does not say, and something was found.
    INVENTED = "invented"
    #: Two extractions differ, so a person will look.
    NEEDS_REVIEW = "needs_review"


@dataclass(frozen=True, slots=True)
class Known:
    """What a person read: one value of one document."""

    document: str
    group: str
    field: str
    row: str
    value: Value | None

    @property
    def name(self) -> str:
        """The field as the sheet names it."""
        return f"{self.group}.{self.field}" if self.group else self.field


def read_gold(path: Path, template: Template) -> list[Known]:
    """Read and check a sheet. Raises GoldError, which names file, line, column, rule and value."""
    text = _text_of(path)
    first = text.partition("\n")[0]
    delimiter = ";" if first.count(";") > first.count(",") else ","
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        missing = [name for name in _COLUMNS if name not in (reader.fieldnames or ())]
        if missing:
            raise GoldError(
                f"{path}, line 1: must have the columns document, field, value and row; add {missing[0]!r}."
            )
        return [_known(line, f"{path}, line {reader.line_num}", template) for line in reader]
    except csv.Error as error:
        raise GoldError(f"{path}, line {reader.line_num}: is not CSV: {error}.") from None


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise GoldError(f"{path} cannot be read: {error.strerror or error}. Name an existing file.") from None
    if len(content) > MAX_BYTES:
        raise GoldError(f"{path} is larger than {MAX_BYTES // 1024 // 1024} MiB; that is no sheet of values.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise GoldError(f"{path} is not UTF-8. Save it as CSV in UTF-8.") from None


def _known(line: Mapping[str | None, Any], where: str, template: Template) -> Known:
    said = {name: (line.get(name) or "").strip() for name in (*_COLUMNS, "row")}
    group, _, name = said["field"].rpartition(".")
    try:
        field = template.field_at(group, name)
    except KeyError:
        raise GoldError(
            f"{where}: field must be one of the template, as name or group.name, got {said['field']!r}."
        ) from None
    if not said["document"]:
        raise GoldError(f"{where}: document must be the name of a file, got nothing.")
    if bool(group) is not bool(said["row"]):
        rule = "must say which row is meant" if group else "must be empty, for the field has one value per document"
        raise GoldError(f"{where}: row {rule}, got {said['row']!r}.")
    try:
        value = fit(field, said["value"])
    except UnfitValueError as error:
        raise GoldError(f"{where}: value must be a {field.type} or empty: {error}.") from None
    return Known(said["document"], group, name, said["row"], value)


@dataclass(frozen=True, slots=True)
class Judged:
    """One known value, what was extracted, and the verdict."""

    known: Known
    found: FieldResult | None
    verdict: Verdict


def judge(template: Template, rows: Iterable[Row], gold: Sequence[Known]) -> list[Judged]:
    """Compare what a run extracted with what is known; values of documents that it did not extract are left out."""
    results = {name: row.result for row in rows if row.result is not None for name in (row.name, *row.duplicates)}
    # A file name stands for the document where no other has it.
    short = Counter(name.rpartition("/")[2] for name in results)
    results |= {
        name.rpartition("/")[2]: result for name, result in results.items() if short[name.rpartition("/")[2]] == 1
    }
    return [_judged(template, results[known.document], known) for known in gold if known.document in results]


def _judged(template: Template, result: DocumentResult, known: Known) -> Judged:
    found = _found(template, result, known)
    field = template.field_at(known.group, known.field)
    return Judged(known, found, _verdict(field, known.value, found))


def _found(template: Template, result: DocumentResult, known: Known) -> FieldResult | None:
    if not known.group:
        return result.fields.get(known.field)
    group = template.group(known.group)
    named = [row for row in result.rows.get(known.group, []) if identity(row_name(group, row)) == identity(known.row)]
    return named[0].get(known.field) if named else None


def _verdict(field: TemplateField, value: Value | None, found: FieldResult | None) -> Verdict:
    if found is not None and found.status is Status.NEEDS_REVIEW:
        return Verdict.NEEDS_REVIEW
    if found is None or found.status is not Status.FOUND:
        return Verdict.RIGHTLY_NOT_FOUND if value is None else Verdict.MISSED
    if value is None:
        return Verdict.INVENTED
    return Verdict.RIGHT if _agrees(field, value, found.value) else Verdict.WRONG


def _agrees(field: TemplateField, value: Value, found: Value | None) -> bool:
    if same_value(field, value, found):
        return True
    if field.type != "text" or found is None:
        return False
    # A person writes "Norway" where the model took "a valley in Norway": one holds the other.
    both = ((str(value), str(found)), (str(found), str(value)))
    return any(align_text(one, other).alignment is not Alignment.NONE for one, other in both)


def accuracy(judged: Sequence[Judged], *, left_out: int = 0) -> dict[str, Any]:
    """Verdicts counted by field and in all; `accuracy` is the share that is right or rightly not found.

    `left_out`: known values of documents that were not extracted, for they may be misspelt names.

    >>> accuracy([Judged(Known("a.txt", "", "size", "", 3), None, Verdict.MISSED)])["fields"]["size"]["accuracy"]
    0.0
    """
    by_field: dict[str, Counter[Verdict]] = {}
    for one in judged:
        by_field.setdefault(one.known.name, Counter())[one.verdict] += 1
    return {
        "values": len(judged),
        "documents": len({one.known.document for one in judged}),
        "left_out": left_out,
        "accuracy": _share(sum(by_field.values(), Counter())),
        "fields": {
            name: {"accuracy": _share(counts), **{verdict.value: counts[verdict] for verdict in Verdict}}
            for name, counts in by_field.items()
        },
    }


def write_accuracy(out: Path, judged: Sequence[Judged], *, left_out: int = 0) -> Path:
    """Write `accuracy.json` into the folder `out`: the counts, and every value that is not right. Returns its path."""
    path = out / "accuracy.json"
    others = [_told(one) for one in judged if one.verdict not in (Verdict.RIGHT, Verdict.RIGHTLY_NOT_FOUND)]
    with written_whole(path) as temporary:
        told = json.dumps({**accuracy(judged, left_out=left_out), "not_right": others}, ensure_ascii=False, indent=2)
        temporary.write_text(told + "\n", encoding="utf-8")
    return path


def _told(one: Judged) -> dict[str, Any]:
    found = one.found.model_dump(mode="json", include={"value", "status", "quote", "note"}) if one.found else None
    place = {"document": one.known.document, "field": one.known.name, "row": one.known.row}
    return {**place, "verdict": one.verdict.value, "known": one.known.value, "found": found}


def _share(counts: Counter[Verdict]) -> float | None:
    total = counts.total()
    return round((counts[Verdict.RIGHT] + counts[Verdict.RIGHTLY_NOT_FOUND]) / total, 4) if total else None
