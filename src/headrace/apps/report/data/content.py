"""The analysis in words."""

from __future__ import annotations

from pydantic import Field

from headrace.apps.report.data.base import Value


class Sentence(Value):
    """A sentence of analysis with the case and cluster ids it rests on; each of them exists."""

    text: str
    cites: tuple[str, ...] = ()


class Content(Value):
    """Text sections. `by_model` False: the template wrote them."""

    objective_and_scope: tuple[Sentence, ...] = ()
    conclusions: tuple[Sentence, ...] = ()
    risks: tuple[Sentence, ...] = ()
    #: A sentence or more for each module with failures, by module.
    modules: dict[str, tuple[Sentence, ...]] = Field(default={})
    by_model: bool = False
    #: Sentences of the model that were left out, for they cite nothing that exists.
    left_out: int = 0
