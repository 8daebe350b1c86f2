"""The shape of what a capable model answers. Its schema is strict; reading it is lenient, most of all for rows.

One odd field costs no document, and one odd row costs neither its siblings nor the document: what cannot be read of a
row is `unclear`, and a row that is none at all is counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, WithJsonSchema, WrapValidator, create_model

from headrace.apps.papers.template import RowGroup, Template, TemplateField

#: More rows of one group in one answer are not read; a note says so.
MAX_ROWS = 500


# Its name and its docstring stand in the schema, which is part of the question: with other words every paid answer
# would be bought again.
class Status(StrEnum):
    """What became of a field."""

    FOUND = "found"
    NOT_REPORTED = "not_reported"
    UNCLEAR = "unclear"
    NOT_APPLICABLE = "not_applicable"


_JSON_TYPES: dict[str, dict[str, Any]] = {
    "number": {"type": "number"},
    "integer": {"type": "integer"},
    "boolean": {"type": "boolean"},
    "list": {"type": "array", "items": {"type": "string"}},
}
_NULLABLE_TEXT = {"anyOf": [{"type": "string"}, {"type": "null"}]}


def answer_model(template: Template) -> type[BaseModel]:
    """The shape of the answer to all fields and rows of a template; see `field_answers` and `row_answers`.

    >>> from headrace.apps.papers.template import parse_template
    >>> template = parse_template("name: t\\nversion: 1\\nfields: [{name: n, type: integer, description: How many}]")
    >>> answers = answer_model(template).model_validate({"n": {"status": "found", "sentences": ["2"], "value": "7"}})
    >>> field_answers(answers, template)[0].sentences
    [2]
    """
    # Attributes have names of our own: a field may be called "json" or "copy", which a model has as methods.
    shapes: dict[str, Any] = {
        f"f{at}": (_field_model(field, f"Answer_{field.name}"), Field(alias=field.name, description=field_words(field)))
        for at, field in enumerate(template.fields)
    }
    for at, group in enumerate(template.rows):
        row: Any = Annotated[_row_model(group), WrapValidator(_row_reader(group))]
        rows: Any = Annotated[list[row], BeforeValidator(_row_list)]
        shapes[f"g{at}"] = (rows, Field(alias=group.name, description=one_line(group.description)))
    return create_model("Answers", **shapes)


def field_answers(answers: BaseModel, template: Template) -> list[Any]:
    """What the model says of each field of the document, in the template's order."""
    return [getattr(answers, f"f{at}") for at in range(len(template.fields))]


def row_answers(answers: BaseModel, template: Template, group: int) -> list[list[Any] | None]:
    """The rows of the group at that place: the answers of a row in the order of its fields, None for an unread row."""
    fields = template.rows[group].fields
    rows = getattr(answers, f"g{group}")
    return [None if row is None else [getattr(row, f"f{at}") for at in range(len(fields))] for row in rows]


def silent_answer(template: Template) -> dict[str, Any]:
    """The answer of a model that finds nothing: valid for `answer_model`, for planning and for tests."""
    silence: dict[str, Any] = {"status": "not_reported", "sentences": [], "value": None, "note": None}
    fields: dict[str, Any] = {field.name: dict(silence) for field in template.fields}
    return fields | {group.name: [] for group in template.rows}


def field_words(field: TemplateField) -> str:
    """The field's label with its examples."""
    examples = "; ".join(str(example) for example in field.examples)
    return field.label + (f". For example: {examples}" if examples else "")


def one_line(text: str) -> str:
    """The text without line breaks."""
    return " ".join(text.split())


def _row_model(group: RowGroup) -> type[BaseModel]:
    shapes: dict[str, Any] = {}
    for at, field in enumerate(group.fields):
        cell = _field_model(field, f"Row_{group.name}_{field.name}")
        shapes[f"f{at}"] = (
            Annotated[cell, WrapValidator(_cell_or_unread)],
            Field(alias=field.name, description=field_words(field)),
        )
    return create_model(f"Row_{group.name}", **shapes)


def _field_model(field: TemplateField, name: str) -> type[BaseModel]:
    # Evidence before the value: what is written first steers what follows.
    kind = {"type": "string", "enum": list(field.enum)} if field.enum else _JSON_TYPES.get(field.type)
    value_schema = {"anyOf": [kind or {"type": "string"}, {"type": "null"}]}
    return create_model(
        name,
        status=(Annotated[Status, BeforeValidator(_status)], ...),
        sentences=(Annotated[list[int], BeforeValidator(_numbers)], ...),
        value=(Annotated[Any, WithJsonSchema(value_schema)], None),
        note=(Annotated[Any, WithJsonSchema(_NULLABLE_TEXT)], None),
    )


def _status(raw: object) -> object:
    word = str(raw).strip().lower().replace(" ", "_")
    return word if word in list(Status) else Status.UNCLEAR


def _numbers(raw: object) -> list[int]:
    items = raw if isinstance(raw, list) else [raw]
    numbers = (str(item).strip("[] ") for item in items if item is not None)
    return [int(number) for number in numbers if number.isascii() and number.isdigit() and len(number) < 9]


def _row_list(raw: object) -> list[object]:
    """A single row for a list, and null for none."""
    if raw is None:
        return []
    rows = raw if isinstance(raw, list) else [raw]
    return rows[: MAX_ROWS + 1]


def _row_reader(group: RowGroup) -> Callable[[object, Callable[[object], Any]], Any]:
    names = [field.name for field in group.fields]

    def read(raw: object, build: Callable[[object], Any]) -> Any:
        """The row, with what is missing or odd in it unread; None where it is no row of this group."""
        if not isinstance(raw, dict) or not any(name in raw for name in names):
            return None
        return build({name: raw.get(name) for name in names})

    return read


def _cell_or_unread(raw: object, build: Callable[[object], Any]) -> Any:
    if isinstance(raw, str | int | float):  # the bare value; code looks for its place
        raw = {"status": Status.FOUND, "sentences": [], "value": raw}
    try:
        return build(raw)
    except ValidationError:
        return UNREAD


@dataclass(frozen=True, slots=True)
class _Unread:
    """Stands for a cell that could not be read."""

    status: Status = Status.UNCLEAR
    sentences: tuple[int, ...] = ()
    value: None = None
    note: str = "this part of the answer could not be read"


UNREAD = _Unread()
