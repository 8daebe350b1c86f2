"""The template: which fields to extract, of which type. Written as YAML, versioned, known by its digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from headrace.apps.papers.errors import TemplateError
from headrace.apps.papers.template_errors import explain
from headrace.apps.papers.yaml_file import YamlFile, read_yaml

FieldType = Literal["text", "number", "integer", "date", "boolean", "enum", "list"]
#: A value as it is extracted: a text (also for dates, ISO 8601, and enums), a number, a boolean, or a list of texts.
Value = str | int | float | bool | list[str]

MAX_FIELDS = 100


def _plain_example(value: object) -> object:
    # YAML reads an unquoted 2021-03-05 as a date; as an example it is meant as text.
    return value.isoformat() if isinstance(value, date) else value


def _as_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


Example = Annotated[str | int | float | bool, BeforeValidator(_plain_example)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")]
FieldName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
Words = Annotated[str, Field(min_length=1, max_length=2_000)]
Choice = Annotated[str, Field(min_length=1, max_length=200)]


class TemplateField(BaseModel):
    """One thing to extract from every document."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: FieldName
    type: FieldType
    #: What is asked for, in words; a weak model is asked with exactly these.
    description: Words
    #: The allowed values; for type enum only.
    enum: Annotated[tuple[Choice, ...], BeforeValidator(_as_tuple)] = ()
    #: What the number is measured in; for types number and integer only.
    unit: Annotated[str, Field(min_length=1, max_length=40)] | None = None
    #: A document without this field is listed under the problems.
    required: bool = False
    #: Values such as this field holds; shown to the model.
    examples: Annotated[tuple[Example, ...], BeforeValidator(_as_tuple), Field(max_length=20)] = ()

    @property
    def label(self) -> str:
        """The description as the beginning of a line in a form: without its full stop, with the unit.

        >>> TemplateField(name="length", type="number", description="How long it is.", unit="m").label
        'How long it is (in m)'
        """
        return f"{self.plain_label} (in {self.unit})" if self.unit else self.plain_label

    @property
    def plain_label(self) -> str:
        """The label without the unit: a weak model gives the unit of the text, and code converts it."""
        return " ".join(self.description.split()).rstrip(".?:; ")

    @field_validator("description", "unit")
    @classmethod
    def _not_blank(cls, value: str | None) -> str | None:
        if value is not None and not value.strip():
            raise ValueError("must not be blank")
        return value

    @model_validator(mode="after")
    def _fits_its_type(self) -> Self:
        if self.type == "enum" and len({choice.casefold() for choice in self.enum}) < max(2, len(self.enum)):
            raise ValueError("enum must list at least two different values, since type is enum")
        if self.type != "enum" and self.enum:
            raise ValueError(f"enum belongs to fields of type enum, and type is {self.type}; remove one of them")
        if self.unit and self.type not in ("number", "integer"):
            raise ValueError(f"unit belongs to numbers, and type is {self.type}; remove the unit or use type: number")
        return self


class Template(BaseModel):
    """A versioned list of fields. Make one with `load_template`, or `parse_template` in tests.

    >>> template = parse_template("name: t\\nversion: 1\\nfields: [{name: n, type: integer, description: How many}]")
    >>> template.fields[0].label, len(template.digest)
    ('How many', 64)
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: Name
    #: Raise it with every change of meaning; a whole number, or a text such as "1.2".
    version: Annotated[int, Field(ge=1)] | Annotated[str, Field(min_length=1, max_length=40)]
    domain: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    #: Told to the model before the fields.
    instructions: Annotated[str, Field(max_length=4_000)] = ""
    fields: Annotated[tuple[TemplateField, ...], BeforeValidator(_as_tuple), Field(min_length=1, max_length=MAX_FIELDS)]

    @field_validator("fields")
    @classmethod
    def _names_differ(cls, fields: tuple[TemplateField, ...]) -> tuple[TemplateField, ...]:
        twice = _first_repeated(field.name for field in fields)
        if twice is not None:
            raise ValueError(f"must have different names, and {twice!r} occurs twice; rename one")
        return fields

    @property
    def digest(self) -> str:
        """sha256 (64 hex digits) of everything the template says, as canonical JSON; layout and comments excluded."""
        said = self.model_dump(mode="json", exclude_defaults=True)
        text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def field(self, name: str) -> TemplateField:
        """The field of that name. Raises `KeyError`."""
        return next(field for field in self.fields if field.name == name)


def load_template(path: Path | str) -> Template:
    """Read and check a template file. Raises `TemplateError`, which names file, line, key, rule, value and fix.

    >>> import headrace.apps.papers.templates as shipped
    >>> load_template(Path(shipped.__path__[0]) / "materials.yaml").name
    'materials'
    """
    return _checked(read_yaml(Path(path)))


def parse_template(text: str, name: str = "template.yaml") -> Template:
    """Check a template given as text; `name` is what errors call it. Raises `TemplateError`."""
    return _checked(YamlFile.parse(text, name))


def _checked(file: YamlFile) -> Template:
    if not isinstance(file.data, dict):
        raise TemplateError(f"{file.name} must be a mapping with name, version and fields, got {file.data!r:.80}")
    try:
        return Template.model_validate(file.data)
    except ValidationError as error:
        keys = (tuple(Template.model_fields), tuple(TemplateField.model_fields))
        raise TemplateError(explain(error, file, keys=keys)) from None


def _first_repeated(names: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
