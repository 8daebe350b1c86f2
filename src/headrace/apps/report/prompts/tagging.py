"""Asking for the module of a case that rules could not tell."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints, create_model

from headrace.apps.report.data.base import Value
from headrace.apps.report.data.modules import UNCATEGORIZED, Assignment, TaggedBy
from headrace.apps.report.prompts import DATA_RULE, clipped, fenced

#: Modules that a question lists.
MOST_MODULES = 100
MAX_TOKENS = 120
_SYSTEM = (
    "You sort test cases into the modules of a product. Choose the one module that the case tests. "
    f"Where none fits, answer {UNCATEGORIZED} with confidence 0. {DATA_RULE}"
)


FreeName = Annotated[str, StringConstraints(min_length=1, max_length=60, strip_whitespace=True)]


class UntaggedCase(Value):
    """What the model is told of a case."""

    case_id: str
    title: str = ""
    steps: str = ""
    expected: str = ""
    preconditions: str = ""
    #: Modules that rules named, the likeliest first.
    candidates: tuple[str, ...] = ()


class TaggingWork(Value):
    """What all questions of a report share, and the cases that are asked for."""

    modules: tuple[str, ...] = ()
    cases: dict[str, UntaggedCase]


@lru_cache(maxsize=16)
def answer_shape(modules: tuple[str, ...]) -> type[BaseModel]:
    """Return what is asked for: one of the modules, or, where none is known, a short name for one."""
    kind: Any = Literal[(*modules[:MOST_MODULES], UNCATEGORIZED)] if modules else FreeName
    return create_model(
        "ModuleOfCase",
        module=(kind, Field(description="module that the case tests")),
        confidence=(float, Field(ge=0, le=1, description="how sure, 0 to 1")),
    )


def system_of(modules: Sequence[str]) -> str:
    """Return what all questions of a report begin with."""
    listed = "\n".join(f"- {module}" for module in modules[:MOST_MODULES])
    return f"{_SYSTEM}\nModules:\n{fenced(listed)}" if listed else _SYSTEM


def prompt_of(case: UntaggedCase) -> str:
    """Return the question about one case."""
    told = {
        "title": case.title,
        "preconditions": clipped(case.preconditions, 300),
        "steps": clipped(case.steps, 600),
        "expected": clipped(case.expected, 300),
    }
    # Names of modules come from the file, too.
    told["modules that rules suggest"] = ", ".join(case.candidates)
    text = "\n".join(f"{name}: {value}" for name, value in told.items() if value)
    return f"{fenced(text)}\nWhich module does this case test?"


def assignment_of(case_id: str, answer: Any) -> Assignment:
    """Return what an answer says of a case."""
    if answer.module == UNCATEGORIZED or not answer.module.strip():
        return Assignment(case_id=case_id, rule="the model found no module that fits")
    return Assignment(
        case_id=case_id, module=answer.module.strip(), confidence=answer.confidence, by=TaggedBy.MODEL, rule="model"
    )
