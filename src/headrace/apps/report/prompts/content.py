"""Asking for the text of a report; code checks that each sentence rests on something that exists."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, Field

from headrace.apps.report.data.content import Content, Sentence
from headrace.apps.report.data.document import Lang
from headrace.apps.report.prompts import DATA_RULE, LANGUAGE, fenced
from headrace.apps.report.prompts.claims import is_refuted
from headrace.apps.report.prompts.grounds import Grounds

MAX_TOKENS = 2_000
_SYSTEM = (
    "You write the analysis of a test report from figures that code has counted. Each sentence cites in `cites` the "
    "ids of cases or clusters that it rests on; ids are those of the data, and a sentence without one is thrown away. "
    "Use no number that the data do not have, neither in digits nor in words, and work none out. "
    "`objective_and_scope`: what was tested. `conclusions`: what the results say, worst first. `risks`: what remains "
    "open. `modules`: a sentence for each module with failures. {rule} {language}"
)


class SentenceAnswer(BaseModel):
    """A sentence and what it rests on."""

    text: str = Field(min_length=1, max_length=600)
    cites: list[str] = Field(max_length=20, description="ids of cases or clusters")


class ModuleAnswer(BaseModel):
    """A sentence about a module."""

    module: str
    text: str = Field(min_length=1, max_length=600)
    cites: list[str] = Field(max_length=20, description="ids of cases or clusters")


class ContentAnswer(BaseModel):
    """The text of a report."""

    objective_and_scope: list[SentenceAnswer] = Field(max_length=5)
    conclusions: list[SentenceAnswer] = Field(max_length=10)
    risks: list[SentenceAnswer] = Field(max_length=10)
    modules: list[ModuleAnswer] = Field(max_length=50)


def system_of(lang: Lang) -> str:
    """Return what the question begins with."""
    return _SYSTEM.format(rule=DATA_RULE, language=LANGUAGE[lang])


def prompt_of(figures: Mapping[str, Any]) -> str:
    """Return the question."""
    return f"{fenced(json.dumps(figures, ensure_ascii=False, sort_keys=True))}\nWrite the analysis."


def checked(answer: ContentAnswer, figures: Mapping[str, Any], known: frozenset[str], template: Content) -> Content:
    """Return what may stand of an answer; a section of which nothing may stand is the template's.

    `known`: ids of all cases and clusters. A sentence stands if it cites one of these, has no number that was not
    counted, and claims nothing that the figures refute.
    """
    sieve = _Sieve(figures, known)
    modules: dict[str, tuple[Sentence, ...]] = {}
    for one in answer.modules:
        if one.module not in template.modules:
            sieve.left_out += 1
        elif kept := sieve.kept([one]):
            modules[one.module] = (*modules.get(one.module, ()), *kept)
    scope, conclusions, risks = map(sieve.kept, (answer.objective_and_scope, answer.conclusions, answer.risks))
    return Content(
        objective_and_scope=scope or template.objective_and_scope,
        conclusions=conclusions or template.conclusions,
        risks=risks or template.risks,
        modules={**template.modules, **modules},
        by_model=sieve.let_through > 0,
        left_out=sieve.left_out,
    )


class _Sieve:
    """Lets sentences through that rest on something."""

    def __init__(self, figures: Mapping[str, Any], known: frozenset[str]) -> None:
        self._known, self._grounds = known, Grounds.of(figures)
        self._failing = {one["module"]: one["failing"] for one in figures["modules"]} | {"": figures["failing"]}
        self._is_passed = figures["verdict"] == "pass"
        self.let_through = self.left_out = 0

    def kept(self, sentences: Iterable[SentenceAnswer | ModuleAnswer]) -> tuple[Sentence, ...]:
        """Return the sentences that may stand, and count the others."""
        found = []
        for one in sentences:
            cites = tuple(dict.fromkeys(cite for cite in one.cites if cite in self._known))
            if self._stands(one.text, cites):
                found.append(Sentence(text=one.text.strip(), cites=cites))
            else:
                self.left_out += 1
        self.let_through += len(found)
        return tuple(found)

    def _stands(self, text: str, cites: tuple[str, ...]) -> bool:
        if not cites or not self._grounds.allow(text, self._known, cites):
            return False
        return not is_refuted(text, failing=self._failing, is_passed=self._is_passed)
