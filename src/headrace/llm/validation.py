"""An answer's text turned into a value of the asked model, or into lines that say what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from headrace.llm.reasoning import without_reasoning
from headrace.llm.results import Provenance

M = TypeVar("M", bound=BaseModel)

#: Where in an object: keys and indices from the outside.
Place = tuple[str | int, ...]

_MOST_ERRORS = 10
_SYNTAX = "json_invalid"


class InvalidAnswerError(Exception):
    """The answer is not valid; stays within the extraction."""

    def __init__(self, errors: Sequence[str], *, json_text: str = "", places: Sequence[Place] = ()) -> None:
        super().__init__("; ".join(errors))
        self.errors = tuple(errors)
        #: The answer as JSON, where it is some; and where in it the errors are.
        self.json, self.places = json_text, tuple(places)


def read_object(model: type[M], text: str) -> tuple[M, Provenance]:
    """The value in this text; words and code fences around the object and small mistakes in it are passed over.

    Raises InvalidAnswerError.
    """
    found = _object_in(text)
    try:
        return validated(model, found), Provenance.LLM
    except NotJsonError as error:
        return validated(model, _mended(found, error)), Provenance.REPAIRED


def read_data(text: str) -> dict[str, Any]:
    """The JSON object in this text. Raises InvalidAnswerError."""
    found = _object_in(text)
    try:
        data = json.loads(found)
    except ValueError as error:
        data = json.loads(_mended(found, InvalidAnswerError([f"Invalid JSON: {error}"])))
    return dict(data)


class NotJsonError(InvalidAnswerError):
    """The text is no JSON; stays within the extraction."""


def validated(model: type[M], text: str) -> M:
    """The value in this JSON. Raises NotJsonError, and InvalidAnswerError with the places of its errors."""
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        listed = error.errors(include_url=False, include_context=False, include_input=False)
        if listed[0]["type"] == _SYNTAX:
            raise NotJsonError(error_lines(error)) from None
        places = [item["loc"] for item in listed]
        raise InvalidAnswerError(error_lines(error), json_text=text, places=places) from None


def _object_in(text: str) -> str:
    text = without_reasoning(text)
    begin, end = text.find("{"), text.rfind("}")
    if begin < 0 or end < begin:
        raise InvalidAnswerError(["the answer holds no JSON object"])
    return text[begin : end + 1]


def _mended(text: str, error: InvalidAnswerError) -> str:
    """The text as JSON. Raises `error` where it cannot be known what it means."""
    from headrace.llm.mending import mended_json  # it takes the errors from here

    try:
        return mended_json(text)
    except InvalidAnswerError:
        raise error from None


def error_lines(error: ValidationError) -> list[str]:
    """One line for each error: where it is, and the rule it breaks."""
    lines = []
    for item in error.errors(include_url=False, include_context=False, include_input=False)[:_MOST_ERRORS]:
        place = ".".join(str(part) for part in item["loc"])
        lines.append(f"{place}: {item['msg']}" if place else item["msg"])
    return lines
