"""Rows of a group: which of them are the same, merged over the parts of a document, and paired over two answers.

Two rows are one when they agree in every field of the group's key. Without a key they are one when they agree in the
first field and contradict each other in none: then nothing is ever lost, at worst a row stands there twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.apps.papers.merge import merge_field
from headrace.apps.papers.result import FieldResult, RowResult
from headrace.apps.papers.sameness import same_value
from headrace.apps.papers.template import RowGroup, TemplateField


def merge_rows(group: RowGroup, rows: Sequence[RowResult]) -> list[RowResult]:
    """Each row once, in the order of their first appearance; fields of equal rows are merged like those of parts.

    >>> from headrace.apps.papers.result import Status
    >>> group = RowGroup(name="arm", description="An arm", fields=(
    ...     TemplateField(name="drug", type="text", description="What was given"),
    ...     TemplateField(name="size", type="integer", description="How many")))
    >>> said = lambda value: FieldResult(value=value, status=Status.FOUND if value else Status.NOT_REPORTED)
    >>> rows = [{"drug": said("Placebo"), "size": said(None)}, {"drug": said("placebo"), "size": said(40)}]
    >>> [(row["drug"].value, row["size"].value) for row in merge_rows(group, rows)]
    [('Placebo', 40)]
    """
    bundles: list[list[RowResult]] = []
    for row in rows:
        home = next((bundle for bundle in bundles if all(_is_same(group, row, known) for known in bundle)), None)
        if home is None:
            bundles.append([row])
        else:
            home.append(row)
    return [_merged(group, bundle) for bundle in bundles]


def pair_rows(
    group: RowGroup, first: Sequence[RowResult], second: Sequence[RowResult]
) -> list[tuple[RowResult | None, RowResult | None]]:
    """The rows of two answers side by side: each with the one of its key that agrees with it most, or with None.

    In the order of the first answer; what only the second has comes last.
    """
    left = list(second)
    pairs: list[tuple[RowResult | None, RowResult | None]] = []
    for row in first:
        rivals = [other for other in left if _same_key(group, row, other)]
        best = max(rivals, key=lambda other: _agreement(group, row, other), default=None)
        if best is not None:
            left = [other for other in left if other is not best]
        pairs.append((row, best))
    return pairs + [(None, row) for row in left]


def says_something(row: RowResult) -> bool:
    """Whether any field of the row has a value, a quote, or a doubt."""
    return any(found.value is not None or found.quote or found.status == "unclear" for found in row.values())


def row_name(group: RowGroup, row: RowResult) -> str:
    """What people call a row: the values of its key; of a disputed one what the candidates say; else empty."""
    return ", ".join(filter(None, (_shown(row[field.name]) for field in _key_fields(group))))


def _shown(found: FieldResult) -> str:
    said = [found.value, *(candidate.value for candidate in found.candidates)]
    texts = ["; ".join(value) if isinstance(value, list) else str(value) for value in said if value is not None]
    return " or ".join(dict.fromkeys(texts))


def _is_same(group: RowGroup, row: RowResult, other: RowResult) -> bool:
    if not _same_key(group, row, other):
        return False
    return bool(group.key) or not any(_contradict(field, row, other) for field in group.fields)


def _same_key(group: RowGroup, row: RowResult, other: RowResult) -> bool:
    fields = _key_fields(group)
    if all(row[field.name].value is None for field in fields):
        # Rows that nothing names are one only if they are equal.
        return all(same_value(field, row[field.name].value, other[field.name].value) for field in group.fields)
    return all(same_value(field, row[field.name].value, other[field.name].value) for field in fields)


def _key_fields(group: RowGroup) -> list[TemplateField]:
    return [group.field(name) for name in group.key] or [group.first]


def _contradict(field: TemplateField, row: RowResult, other: RowResult) -> bool:
    one, two = row[field.name].value, other[field.name].value
    return one is not None and two is not None and not same_value(field, one, two)


def _agreement(group: RowGroup, row: RowResult, other: RowResult) -> int:
    return sum(same_value(field, row[field.name].value, other[field.name].value) for field in group.fields)


def _merged(group: RowGroup, bundle: Sequence[RowResult]) -> RowResult:
    if len(bundle) == 1:
        return bundle[0]
    return {field.name: merge_field(field, [row[field.name] for row in bundle]) for field in group.fields}
