"""Values that a person typed, brought to the type of their field: whole, unambiguous, or refused.

Unlike what a model says, nothing is picked out of a longer text here. A spreadsheet program may have changed what was
typed: 1 to 1.0, 2021-03 to the first of March, 1-2 to the second of January. What that leaves in doubt is refused.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time
from decimal import Decimal

from headrace.apps.papers.dates import dates_in
from headrace.apps.papers.output.cells import typed
from headrace.apps.papers.quantities import numbers_in
from headrace.apps.papers.result import Status
from headrace.apps.papers.review.decisions import REPORTED
from headrace.apps.papers.template import TemplateField, Value
from headrace.apps.papers.units import in_unit, measure
from headrace.apps.papers.values import MAX_VALUE_CHARS
from headrace.apps.papers.wording import normal_form, storable

#: In the column of edited values: what a document without a value says.
SILENT = {
    f"[{status.replace('_', ' ')}]": status.value
    for status in (Status.NOT_REPORTED, Status.NOT_APPLICABLE, Status.UNCLEAR)
}
_ISO = re.compile(r"\d{4}(?:-\d{2}(?:-\d{2})?)?")
_TYPE_OF_CELL = "format the cell as text and type it again"
_YES, _NO = frozenset({"true", "yes"}), frozenset({"false", "no"})


class UnfitEditError(ValueError):
    """What was typed does not fit the field; the text is the rule it breaks."""


def edited(field: TemplateField, cell: object) -> tuple[Value | None, str]:
    """The value of a cell as the field's type, and what it says: `reported`, or why there is none.

    >>> field = TemplateField(name="dose", type="number", unit="mg", description="Daily dose")
    >>> edited(field, "1.5 g"), edited(field, 50.0), edited(field, "[not reported]")
    ((1500, 'reported'), (50, 'reported'), (None, 'not_reported'))
    """
    if isinstance(cell, str):
        text = " ".join(cell.casefold().replace("_", " ").split())
        if text in SILENT:
            return None, SILENT[text]
    match field.type:
        case "number" | "integer":
            return _number(field, cell), REPORTED
        case "boolean":
            return _boolean(cell), REPORTED
        case "date":
            return _date(cell), REPORTED
        case "enum":
            return _choice(field, _text(cell)), REPORTED
        case "list":
            return _list(_text(cell, lines=True)), REPORTED
        case _:
            return _text(cell), REPORTED


def _text(cell: object, *, lines: bool = False) -> str:
    if isinstance(cell, bool | date | time) or not isinstance(cell, str | int | float):
        kind = "yes/no" if isinstance(cell, bool) else "date or time"
        raise UnfitEditError(f"must be text, and the spreadsheet program made a {kind} of it; {_TYPE_OF_CELL}")
    whole = str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
    whole = typed(whole)
    if len(whole) > MAX_VALUE_CHARS:
        raise UnfitEditError(f"must have at most {MAX_VALUE_CHARS} characters; shorten it")
    return "\n".join(map(storable, whole.splitlines())) if lines else storable(whole)


def _number(field: TemplateField, cell: object) -> int | float:
    wanted = "a whole number" if field.type == "integer" else "a number"
    if isinstance(cell, bool | date | time):
        raise UnfitEditError(
            f"must be {wanted}, and the spreadsheet program made something else of it; {_TYPE_OF_CELL}"
        )
    value = Decimal(str(cell)) if isinstance(cell, int | float) else _measured(field, typed(str(cell).strip()), wanted)
    if value == value.to_integral_value():
        return int(value)
    if field.type == "integer":
        raise UnfitEditError("must be a whole number")
    return float(value)


def _measured(field: TemplateField, text: str, wanted: str) -> Decimal:
    values = set()
    for number in numbers_in(text):
        unit = " ".join(text[number.end :].split()).lstrip("-–")
        if number.start == 0 and unit in ("", number.unit):
            values.add(_in_unit(field, number.value, unit))
    if not values:
        raise UnfitEditError(f"must be {wanted}" + (f" in {field.unit}" if field.unit else "") + " and nothing else")
    if len(values) > 1:
        readings = " or ".join(f"{value.normalize():f}" for value in sorted(values))
        raise UnfitEditError(f"must be clear, and may be {readings}; write it without marks between thousands")
    return values.pop()


def _in_unit(field: TemplateField, value: Decimal, unit: str) -> Decimal:
    if not unit or normal_form(unit) == normal_form(field.unit or ""):
        return value
    known = field.unit is not None and measure(unit) is not None and measure(field.unit) is not None
    converted = in_unit(value, unit, field.unit) if known else None
    if converted is None:
        rule = f"in {field.unit}" if field.unit else "a number without a unit"
        raise UnfitEditError(f"must be {rule}, and {unit} cannot be converted")
    return Decimal(f"{converted:.10g}")


def _boolean(cell: object) -> bool:
    if isinstance(cell, bool):
        return cell
    word = str(cell).strip().casefold()
    if word in _YES | _NO:
        return word in _YES
    raise UnfitEditError("must be true or false (or yes or no)")


def _date(cell: object) -> str:
    if isinstance(cell, datetime | date):
        midnight = not isinstance(cell, datetime) or cell.time() == time()
        if not midnight or cell.day == 1:
            month = f"{cell.year:04}-{cell.month:02}"
            raise UnfitEditError(
                f"must be clear, and may be {month} or {month}-01, since the spreadsheet program made a date of it; "
                f"{_TYPE_OF_CELL}"
            )
        return f"{cell.year:04}-{cell.month:02}-{cell.day:02}"
    text = str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell).strip()
    # The first forms are the precise ones; a year within a longer text is none of them.
    readings = {found.iso for found in dates_in(text) if found.text == text}
    if _ISO.fullmatch(text):
        readings &= {text}
    if not readings:
        raise UnfitEditError("must be a date: YYYY, YYYY-MM or YYYY-MM-DD")
    if len(readings) > 1:
        raise UnfitEditError(f"must be clear, and may be {' or '.join(sorted(readings))}; write YYYY-MM-DD")
    return readings.pop()


def _choice(field: TemplateField, text: str) -> str:
    for choice in field.enum:
        if normal_form(choice) == normal_form(text):
            return choice
    raise UnfitEditError(f"must be one of {', '.join(field.enum)}")


def _list(text: str) -> list[str]:
    items = dict.fromkeys(item.strip() for item in re.split(r"[;\n]", text))
    found = [item for item in items if item]
    if not found:
        raise UnfitEditError("must list at least one item, with semicolons between them")
    return found
