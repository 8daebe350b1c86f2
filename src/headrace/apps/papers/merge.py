"""One result per field from the results of overlapping parts of a document. The same input gives the same answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headrace.apps.papers.result import Alignment, FieldResult, Status
from headrace.apps.papers.template import TemplateField
from headrace.apps.papers.wording import normal_form

_ORDER = (Status.FOUND, Status.UNCLEAR, Status.NOT_APPLICABLE, Status.NOT_REPORTED)
_RANK = {Alignment.EXACT: 0, Alignment.NORMALISED: 0, Alignment.FUZZY: 1, Alignment.NONE: 2}


def merge_field(
    field: TemplateField, parts: Sequence[FieldResult], *, preferred: Callable[[FieldResult], bool] | None = None
) -> FieldResult:
    """Found beats unclear beats not applicable beats not reported; of equal values the best aligned, then the first.

    Different values: a list is joined; else the only one of the better alignment wins, else the only one that is
    `preferred`; else the field is unclear and the note names the values.

    >>> field = TemplateField(name="n", type="integer", description="How many")
    >>> merge_field(field, [FieldResult(status=Status.NOT_REPORTED), FieldResult(status=Status.FOUND, value=3)]).value
    3
    """
    status = next(status for status in _ORDER if any(part.status is status for part in parts))
    same = [part for part in parts if part.status is status]
    if status is not Status.FOUND:
        return _first_with_value(same)
    if field.type == "list":
        return _joined(same)
    groups = _by_value(same)
    if len(groups) == 1:
        return groups[0]
    best = min(_RANK[group.alignment] for group in groups)
    candidates = [group for group in groups if _RANK[group.alignment] == best]
    others = " or ".join(f"{group.value} (page {group.page})" for group in groups)
    if len(candidates) == 1:
        return candidates[0].model_copy(update={"note": f"chosen for its better evidence: {others}"})
    hinted = [group for group in candidates if preferred is not None and preferred(group)]
    if len(hinted) == 1:
        return hinted[0].model_copy(update={"note": f"chosen for its section: {others}"})
    # A quote would stand for one of the values; the note names them all.
    return FieldResult(status=Status.UNCLEAR, note=f"the document gives several values: {others}")


def _first_with_value(parts: Sequence[FieldResult]) -> FieldResult:
    return min(enumerate(parts), key=lambda part: (part[1].value is None, part[1].quote is None, part[0]))[1]


def _by_value(parts: Sequence[FieldResult]) -> list[FieldResult]:
    """The best aligned result of each different value, in the order of their first appearance."""
    groups: dict[str, FieldResult] = {}
    for part in parts:
        key = normal_form(str(part.value))
        known = groups.get(key)
        if known is None or _RANK[part.alignment] < _RANK[known.alignment]:
            groups[key] = part
    return list(groups.values())


def _joined(parts: Sequence[FieldResult]) -> FieldResult:
    items: dict[str, str] = {}
    for part in parts:
        for item in part.value if isinstance(part.value, list) else []:
            items.setdefault(normal_form(item), item)
    first = max(parts, key=lambda part: len(part.value) if isinstance(part.value, list) else 0)
    worst = max((part.alignment for part in parts), key=lambda alignment: _RANK[alignment])
    notes = "; ".join(dict.fromkeys(part.note for part in parts if part.note))
    return first.model_copy(update={"value": list(items.values()), "alignment": worst, "note": notes})
