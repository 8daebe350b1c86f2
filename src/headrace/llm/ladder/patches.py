"""The parts of an object that were wrong: asked for alone and put in their places, the rest stays as it was said."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, Field, create_model
from pydantic.fields import FieldInfo

from headrace.llm.validation import InvalidAnswerError, Place

#: A shorter object is asked for whole: its parts would cost as much.
_LEAST_LENGTH = 600
#: Most of the object that its wrong parts may make up.
_MOST_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Part:
    """A field of an object, or one element of a field that is a list."""

    field: str
    index: int | None = None

    @property
    def key(self) -> str:
        """Its key in the request."""
        return self.field if self.index is None else f"{self.field}_{self.index}"

    @property
    def place(self) -> Place:
        """Where it is in the object."""
        return (self.field,) if self.index is None else (self.field, self.index)


@dataclass(frozen=True, slots=True)
class Patch:
    """The wrong parts of one answer: fields, and elements of lists."""

    data: Mapping[str, Any]
    parts: tuple[Part, ...]
    errors: tuple[str, ...]

    @classmethod
    def of(cls, model: type[BaseModel], wrong: InvalidAnswerError) -> Patch | None:
        """The patch for this answer; None where it is better asked for whole."""
        if not wrong.json or len(wrong.json) < _LEAST_LENGTH:
            return None
        fields = _fields(model)
        parts = [_part(place, fields) for place in wrong.places]
        known = tuple(dict.fromkeys(part for part in parts if part is not None))
        if not known or None in parts:
            return None
        patch = cls(json.loads(wrong.json), known, wrong.errors)
        said = json.dumps(patch.current, ensure_ascii=False)
        return patch if len(said) <= _MOST_SHARE * len(wrong.json) else None

    @property
    def keys(self) -> list[str]:
        """The key of each part in the request."""
        return [part.key for part in self.parts]

    @property
    def current(self) -> dict[str, Any]:
        """The parts as they were said; without those that were not."""
        return {
            part.key: self.data[part.field] if part.index is None else self.data[part.field][part.index]
            for part in self.parts
            if part.field in self.data
        }

    def shape(self, model: type[BaseModel]) -> type[BaseModel]:
        """A model of the parts under their keys."""
        fields = _fields(model)
        shapes = {
            f"part{number}": (_annotation(fields[part.field], part), Field(alias=part.key))
            for number, part in enumerate(self.parts)
        }
        return create_model(f"{model.__name__}Parts", **shapes)  # type: ignore[call-overload,no-any-return]

    def applied(self, given: Mapping[str, Any]) -> str:
        """The object with these parts in it, as JSON. Raises InvalidAnswerError where not one of them is there."""
        data = json.loads(json.dumps(self.data))
        if not any(key in given for key in self.keys):
            places = [part.place for part in self.parts]
            raise InvalidAnswerError(self.errors, json_text=json.dumps(data, ensure_ascii=False), places=places)
        for part in self.parts:
            if part.key not in given:
                continue
            if part.index is None:
                data[part.field] = given[part.key]
            else:
                data[part.field][part.index] = given[part.key]
        return json.dumps(data, ensure_ascii=False)


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields by their keys in JSON; those with several are left out."""
    return dict(_keyed(model))


def _keyed(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        if field.validation_alias is None:
            yield name, field
        elif isinstance(field.validation_alias, str):
            yield field.validation_alias, field


def _part(place: Place, fields: Mapping[str, FieldInfo]) -> Part | None:
    """The part that a place lies in; None where it lies in none."""
    field, index = (*place, None, None)[:2]
    if not isinstance(field, str) or field not in fields:
        return None
    return Part(field, index if isinstance(index, int) and _element(fields[field]) is not None else None)


def _element(field: FieldInfo) -> Any:
    """What the field's list holds; None where it is no list."""
    annotation = field.annotation
    return get_args(annotation)[0] if get_origin(annotation) is list and get_args(annotation) else None


def _annotation(field: FieldInfo, part: Part) -> Any:
    if part.index is not None:
        return _element(field)
    annotation: Any = field.annotation
    for rule in field.metadata:
        annotation = Annotated[annotation, rule]
    return annotation
