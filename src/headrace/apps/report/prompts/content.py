"""Asking for the text of a report; code checks that each sentence rests on something that exists."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, Field

from headrace.apps.report.data.content import Content, Sentence
from headrace.apps.report.data.document import Lang
from headrace.apps.report.prompts import DATA_RULE, LANGUAGE, fenced

MAX_TOKENS = 2_000
_SYSTEM = (
    "You write the analysis of a test report from figures that code has counted. Each sentence cites in `cites` the "
    "ids of cases or clusters that it rests on; ids are those of the data, and a sentence without one is thrown away. "
    "Use no number that the data do not have. `objective_and_scope`: what was tested. `conclusions`: what the "
    "results say, worst first. `risks`: what remains open. `modules`: a sentence for each module with failures. "
    "{rule} {language}"
)
_NUMBER = re.compile(r"(?<![A-Za-z0-9_.])\d+(?:[.,]\d+)*%?")


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

    `known`: ids of all cases and clusters. A sentence stands if it cites one of these, and has no number that the
    figures lack.
    """
    sieve = _Sieve(known, _numbers(json.dumps(figures, ensure_ascii=False)))
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

    def __init__(self, known: frozenset[str], numbers: frozenset[str]) -> None:
        self._known, self._numbers = known, numbers
        self.let_through = self.left_out = 0

    def kept(self, sentences: Iterable[SentenceAnswer | ModuleAnswer]) -> tuple[Sentence, ...]:
        """Return the sentences that may stand, and count the others."""
        found = []
        for one in sentences:
            cites = tuple(dict.fromkeys(cite for cite in one.cites if cite in self._known))
            if cites and _numbers(_without(cites, one.text)) <= self._numbers:
                found.append(Sentence(text=one.text.strip(), cites=cites))
            else:
                self.left_out += 1
        self.let_through += len(found)
        return tuple(found)


def _without(ids: Iterable[str], text: str) -> str:
    """Return a text without ids, where they stand by themselves: the 1 of "15 cases" is no case "1".

    >>> _without(["TC-1", "1"], "TC-1, TC-12 and 15 others")
    ', TC-12 and 15 others'
    """
    anyone = "|".join(re.escape(one) for one in sorted(ids, key=len, reverse=True))
    return re.sub(rf"(?<![A-Za-z0-9_.-])(?:{anyone})(?![A-Za-z0-9_-]|[.,]\d|\s*%)", "", text)


def _numbers(text: str) -> frozenset[str]:
    """Return the numbers in a text, without signs of per cent.

    >>> sorted(_numbers("12 of 40 (30.0%) fail"))
    ['12', '30', '40']
    """
    return frozenset(_plain(found) for found in _NUMBER.findall(text))


def _plain(number: str) -> str:
    digits = number.rstrip("%").replace(",", "")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits
