"""The template: which fields to extract, of which type. Written as YAML, versioned, known by its digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
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

#: Of the document and of all its groups of rows together.
MAX_FIELDS = 100
MAX_GROUPS = 10


def _plain_example(value: object) -> object:
    # YAML reads an unquoted 2021-03-05 as a date; as an example it is meant as text.
    return value.isoformat() if isinstance(value, date) else value


def _as_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _one_or_more(value: object) -> object:
    return (value,) if isinstance(value, str) else _as_tuple(value)


Example = Annotated[str | int | float | bool, BeforeValidator(_plain_example)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")]
FieldName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
Words = Annotated[str, Field(min_length=1, max_length=2_000)]
Choice = Annotated[str, Field(min_length=1, max_length=200)]
SectionHint = Annotated[str, Field(min_length=1, max_length=80, pattern=r"\S")]


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
    #: Where to look first: kinds of sections (methods, results …) or words of their titles.
    section: Annotated[tuple[SectionHint, ...], BeforeValidator(_one_or_more), Field(max_length=10)] = ()

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


def _different(names: Iterable[str], what: str) -> None:
    twice = _first_repeated(names)
    if twice is not None:
        raise ValueError(f"must have different {what}, and {twice!r} occurs twice; rename one")


Fields = Annotated[tuple[TemplateField, ...], BeforeValidator(_as_tuple), Field(min_length=1, max_length=MAX_FIELDS)]


class RowGroup(BaseModel):
    """Fields that a document gives several times, one row for each arm, outcome or the like.

    >>> fields = (TemplateField(name="drug", type="text", description="What was given"),)
    >>> RowGroup(name="arm", description="An arm of the trial", fields=fields).first.name
    'drug'
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: FieldName
    #: What one row stands for, in words.
    description: Words
    fields: Fields
    #: Names of the fields that tell rows apart: two rows that agree in all of them are one. Left out, rows are one when
    #: they agree in the first field and contradict each other in none.
    key: Annotated[tuple[FieldName, ...], BeforeValidator(_one_or_more)] = ()

    @field_validator("description")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be blank")
        return value

    @field_validator("fields")
    @classmethod
    def _names_differ(cls, fields: tuple[TemplateField, ...]) -> tuple[TemplateField, ...]:
        _different((field.name for field in fields), "names")
        return fields

    @model_validator(mode="after")
    def _key_is_known(self) -> Self:
        known = [field.name for field in self.fields]
        strange = next((name for name in self.key if name not in known), None)
        if strange is not None:
            raise ValueError(f"key must name fields of this group ({', '.join(known)}), got {strange!r}; correct it")
        return self

    @property
    def first(self) -> TemplateField:
        """The field by which people call a row."""
        return self.field(self.key[0]) if self.key else self.fields[0]

    def field(self, name: str) -> TemplateField:
        """The field of that name. Raises `KeyError`."""
        return _named(self.fields, name)


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
    #: One value per document.
    fields: Fields
    #: Several rows per document.
    rows: Annotated[tuple[RowGroup, ...], BeforeValidator(_as_tuple), Field(max_length=MAX_GROUPS)] = ()

    @field_validator("fields")
    @classmethod
    def _names_differ(cls, fields: tuple[TemplateField, ...]) -> tuple[TemplateField, ...]:
        _different((field.name for field in fields), "names")
        return fields

    @model_validator(mode="after")
    def _groups_fit(self) -> Self:
        # They stand side by side in an answer.
        names = [field.name for field in self.fields] + [group.name for group in self.rows]
        _different(names, "names for fields and groups of rows")
        count = len(self.fields) + sum(len(group.fields) for group in self.rows)
        if count > MAX_FIELDS:
            raise ValueError(f"must have at most {MAX_FIELDS} fields with those of its rows, got {count}; split it")
        return self

    @property
    def digest(self) -> str:
        """sha256 (64 hex digits) of everything the template says, as canonical JSON; layout and comments excluded."""
        said = self.model_dump(mode="json", exclude_defaults=True)
        text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def field(self, name: str) -> TemplateField:
        """The field of that name. Raises `KeyError`."""
        return _named(self.fields, name)

    def group(self, name: str) -> RowGroup:
        """The group of rows of that name. Raises `KeyError`."""
        found = next((group for group in self.rows if group.name == name), None)
        if found is None:
            raise KeyError(name)
        return found

    def field_at(self, group: str, name: str) -> TemplateField:
        """The field of a group, or of the document where `group` is empty. Raises `KeyError`."""
        return self.group(group).field(name) if group else self.field(name)


def _named(fields: Sequence[TemplateField], name: str) -> TemplateField:
    found = next((field for field in fields if field.name == name), None)
    if found is None:
        raise KeyError(name)
    return found


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
        shapes: dict[str, type[BaseModel]] = {"": Template, "fields": TemplateField, "rows": RowGroup}
        keys = {name: tuple(shape.model_fields) for name, shape in shapes.items()}
        raise TemplateError(explain(error, file, keys=keys)) from None


def _first_repeated(names: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
