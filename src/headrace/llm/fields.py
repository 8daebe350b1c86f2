"""A model's fields as single questions, for models that answer only plainly."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo


class Kind(StrEnum):
    """What kind of short answer a field wants."""

    TEXT = "text"
    NUMBER = "number"
    YES_NO = "yes_no"
    CHOICE = "choice"
    LIST = "list"
    #: Nothing short can say it; asked for as JSON.
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Question:
    """One question: for which field, in which words, answered how."""

    #: Names from the outermost model to the field.
    path: tuple[str, ...]
    text: str
    kind: Kind
    #: The words to choose from, for `choice` and for lists of choices.
    choices: tuple[str, ...]
    #: Whether the field may be None.
    is_optional: bool
    annotation: Any


def questions(model: type[BaseModel], path: tuple[str, ...] = (), about: str = "") -> Iterator[Question]:
    """The questions that fill this model, nested models included, in the order of the fields."""
    for name, field in model.model_fields.items():
        annotation, is_optional = _without_none(field.annotation)
        words = _words(name, field)
        here = (*path, field.validation_alias if isinstance(field.validation_alias, str) else field.alias or name)
        if _is_model(annotation) and model not in _models_in(annotation):
            yield from questions(annotation, here, f"{words} of the {about}" if about else words)
            continue
        kind = _kind(annotation)
        choices = _choices(_item(annotation) if kind is Kind.LIST else annotation)
        yield Question(here, _ask(words, about, kind, choices), kind, choices, is_optional, field.annotation)


def _words(name: str, field: FieldInfo) -> str:
    words = (field.description or field.title or name.replace("_", " ")).strip().rstrip(".")
    return re.sub(r"^(?i:the)\s+", "", words)


def _ask(words: str, about: str, kind: Kind, choices: tuple[str, ...]) -> str:
    whole = f"{words} of the {about}" if about else words
    if words.endswith("?"):
        question = words
    elif kind is Kind.NUMBER and whole.startswith(_COUNT):
        question = f"How many {whole.removeprefix(_COUNT)}?"
    elif kind is Kind.YES_NO:
        question = f"Is it true that {whole.removeprefix('whether ')}?"
    else:
        question = f"What is the {whole[0].lower()}{whole[1:]}?" if whole[1:2].islower() else f"What is the {whole}?"
    if choices:
        return f"{question} Choose from: {', '.join(choices)}."
    return f"{question}{_MANNER[kind]}"


_COUNT = "number of "
_MANNER = {
    Kind.TEXT: "",
    Kind.NUMBER: "",  # asked for a number, a small model makes one up
    Kind.YES_NO: " Answer yes or no.",
    Kind.CHOICE: "",
    Kind.LIST: " Answer with a list, separated by commas.",
    Kind.JSON: "",
}


def _kind(annotation: Any) -> Kind:
    if get_origin(annotation) in (list, set, tuple, frozenset):
        item = _kind(_item(annotation))
        return Kind.LIST if item in (Kind.TEXT, Kind.NUMBER, Kind.CHOICE) else Kind.JSON
    if _choices(annotation):
        return Kind.CHOICE
    if annotation is bool:
        return Kind.YES_NO
    if annotation in (int, float, Decimal):
        return Kind.NUMBER
    if isinstance(annotation, type) and not _is_model(annotation) and annotation not in (dict, list, set, tuple):
        return Kind.TEXT
    return Kind.JSON


def _without_none(annotation: Any) -> tuple[Any, bool]:
    """The annotation without None and without metadata, and whether None was in it."""
    if get_origin(annotation) is Annotated:
        return _without_none(get_args(annotation)[0])
    if get_origin(annotation) not in (Union, types.UnionType):
        return annotation, False
    others = [option for option in get_args(annotation) if option is not type(None)]
    is_optional = len(others) < len(get_args(annotation))
    return (_without_none(others[0])[0] if len(others) == 1 else annotation), is_optional


def _item(annotation: Any) -> Any:
    arguments = [argument for argument in get_args(annotation) if argument is not Ellipsis]
    return _without_none(arguments[0])[0] if len(arguments) == 1 else Any


def _choices(annotation: Any) -> tuple[str, ...]:
    if get_origin(annotation) is Literal:
        return tuple(str(option) for option in get_args(annotation))
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return tuple(str(member.value) for member in annotation)
    return ()


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _models_in(model: type[BaseModel]) -> set[type[BaseModel]]:
    """The models that lie in a model, at any depth; one that lies in itself cannot be asked field by field."""
    found: set[type[BaseModel]] = set()
    waiting = [model]
    while waiting:
        current = waiting.pop()
        nested = [_without_none(field.annotation)[0] for field in current.model_fields.values()]
        waiting.extend(option for option in nested if _is_model(option) and option not in found)
        found.update(option for option in nested if _is_model(option))
    return found
