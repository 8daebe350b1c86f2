"""An answer's text turned into a value of the asked model, or into lines that say what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel, ValidationError

M = TypeVar("M", bound=BaseModel)

_MOST_ERRORS = 10


class InvalidAnswerError(Exception):
    """The answer is not valid; stays within the extraction."""

    def __init__(self, errors: Sequence[str]) -> None:
        super().__init__("; ".join(errors))
        self.errors = tuple(errors)


def read_json(model: type[M], text: str) -> M:
    """The value in this text; words and code fences around the object are passed over.

    Raises InvalidAnswerError.
    """
    begin, end = text.find("{"), text.rfind("}")
    if begin < 0 or end < begin:
        raise InvalidAnswerError(["the answer holds no JSON object"])
    try:
        return model.model_validate_json(text[begin : end + 1])
    except ValidationError as error:
        raise InvalidAnswerError(error_lines(error)) from None


def error_lines(error: ValidationError) -> list[str]:
    """One line for each error: where it is, and the rule it breaks."""
    lines = []
    for item in error.errors(include_url=False, include_context=False, include_input=False)[:_MOST_ERRORS]:
        place = ".".join(str(part) for part in item["loc"])
        lines.append(f"{place}: {item['msg']}" if place else item["msg"])
    return lines
