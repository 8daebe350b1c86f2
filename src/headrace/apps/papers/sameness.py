"""Whether two values of a field say the same thing, whatever their notation."""

from __future__ import annotations

import re
from decimal import Decimal

from headrace.apps.papers.template import TemplateField, Value
from headrace.apps.papers.wording import normal_form

_ARTICLES = frozenset({"a", "an", "the"})
#: Of a longest number so much may be lost in a conversion between units.
_CLOSE = Decimal("1e-6")
# NFKC makes 102 of 10², which is another number.
_RAISED = str.maketrans({char: f"^{digit}" for digit, char in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")} | {"⁻": "^-"})


def same_value(field: TemplateField, one: Value | None, other: Value | None) -> bool:
    """Whether two values agree: numbers as numbers (units are converted before), texts without case, articles and
    marks at their edges, lists in any order. Nothing agrees only with nothing.

    >>> field = TemplateField(name="drug", type="text", description="What was given")
    >>> same_value(field, "The Placebo.", "placebo"), same_value(field, "10² cells", "102 cells")
    (True, False)
    """
    if one is None or other is None:
        return one is None and other is None
    if field.type in ("number", "integer"):
        return _same_number(one, other)
    if field.type == "boolean":
        return one is other
    if isinstance(one, list) or isinstance(other, list):
        return _words_of(one) == _words_of(other)
    return identity(one) == identity(other)


def identity(value: Value) -> str:
    """The form by which texts are compared.

    >>> identity(" The  Intervention – arm A+ ")
    'intervention - arm a+'
    """
    words = normal_form(str(value).translate(_RAISED)).split()
    kept = [word for word in (re.sub(r"^[\"'(\[]+|[\"')\].,;:]+$", "", word) for word in words) if word]
    return " ".join([word for word in kept if word not in _ARTICLES] or kept)


def _same_number(one: Value, other: Value) -> bool:
    if isinstance(one, list | bool) or isinstance(other, list | bool):
        return one == other
    first, second = Decimal(str(one)), Decimal(str(other))
    return abs(first - second) <= _CLOSE * max(abs(first), abs(second))


def _words_of(value: Value) -> set[str]:
    return {identity(item) for item in (value if isinstance(value, list) else [value])}
