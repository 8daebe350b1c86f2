"""Bring what a model answered to the type of its field, or say why it does not fit."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Context, Decimal

from headrace.apps.papers.dates import parse_date
from headrace.apps.papers.quantities import numbers_in
from headrace.apps.papers.template import TemplateField, Value
from headrace.apps.papers.units import in_unit
from headrace.apps.papers.wording import normal_form, stems, storable

MAX_VALUE_CHARS = 2_000
_YES = frozenset({"yes", "true", "y", "1"})
_NO = frozenset({"no", "false", "n", "0"})


class UnfitValueError(ValueError):
    """The answer does not fit the type of its field."""


def fit(field: TemplateField, raw: object) -> Value | None:
    """The value as the field's type; None for an empty answer. Raises `UnfitValueError`.

    >>> field = TemplateField(name="n", type="number", unit="mg", description="The dose")
    >>> fit(field, "1,200 mg"), fit(field, "1.5 g"), fit(field, " ")
    (1200, 1500, None)
    """
    if raw is None or (isinstance(raw, str) and not raw.strip(" \t\n\"'.")):
        return None
    match field.type:
        case "number" | "integer":
            return _number(field, raw)
        case "boolean":
            return _boolean(raw)
        case "date":
            return _date(raw)
        case "enum":
            return _choice(field, _text(raw))
        case "list":
            return _list(raw)
        case _:
            return _text(raw)


def _text(raw: object) -> str:
    text = storable(str(raw))[:MAX_VALUE_CHARS]
    unquoted = text[1:-1] if len(text) > 1 and text[0] in "\"'“‘" and text[-1] in "\"'”’" else text
    # A full stop is the model's habit; the one of "et al." or "sp." is part of the name.
    return unquoted[:-1] if re.search(r"[^\W\d]{4,}\.$", unquoted) else unquoted


def _number(field: TemplateField, raw: object) -> int | float:
    if isinstance(raw, bool):
        raise UnfitValueError(f"{raw} is not a number")
    value = Decimal(str(raw)) if isinstance(raw, int | float) else _measured(field, str(raw))
    if not value.is_finite():
        raise UnfitValueError(f"{raw} is not a number")
    if value == value.to_integral_value():
        return int(value)
    if field.type == "integer":
        raise UnfitValueError(f"{raw} is not a whole number")
    return float(value)


def _measured(field: TemplateField, text: str) -> Decimal:
    number = next(numbers_in(text), None)
    if number is None:
        raise UnfitValueError(f"{text[:60]!r} is not a number")
    value = in_unit(number.value, number.unit, field.unit)
    if value is None:
        raise UnfitValueError(f"{text[:60]!r} cannot be given in {field.unit}")
    # A conversion may give endless digits; what was not converted keeps all of its own.
    return value if value == number.value else Context(prec=10).plus(value)


def _boolean(raw: object) -> bool:
    if isinstance(raw, bool):
        return raw
    word = re.match(r"\w*", normal_form(str(raw)))
    if word and word[0] in _YES | _NO:
        return word[0] in _YES
    raise UnfitValueError(f"{str(raw)[:60]!r} is neither yes nor no")


def _date(raw: object) -> str:
    found = parse_date(str(raw))
    if found is None:
        raise UnfitValueError(f"{str(raw)[:60]!r} is not a date")
    return found


def _choice(field: TemplateField, text: str) -> str:
    wanted = normal_form(text)
    for choice in field.enum:
        if normal_form(choice) == wanted:
            return choice
    near = [choice for choice in field.enum if stems(choice) and set(stems(choice)) <= set(stems(text))]
    if len(near) == 1:
        return near[0]
    raise UnfitValueError(f"{text[:60]!r} is none of {', '.join(field.enum)}")


def _list(raw: object) -> list[str] | None:
    if isinstance(raw, list | tuple):
        parts: Iterable[object] = raw
    else:
        text = str(raw)
        parts = re.split(r"\s*[;\n]\s*" if ";" in text or "\n" in text else r",\s+(?:and\s+)?|\s+and\s+", text)
    found: dict[str, str] = {}
    for part in parts:
        item = _text(part)
        if item:
            found.setdefault(normal_form(item), item)
    return list(found.values()) or None
