"""Rules of modules: what a file may say, with the defaults."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated

from pydantic import Field, StringConstraints, field_validator, model_validator

from headrace.apps.report.data.base import Value
from headrace.apps.report.tagging.patterns import UnsafePattern, safe_pattern

Part = Annotated[float, Field(ge=0, le=1)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
MOST_ENTRIES = 200
Texts = Annotated[tuple[Text, ...], Field(max_length=MOST_ENTRIES)]


class Confidence(Value):
    """How sure each kind of evidence makes, from 0 to 1. What is learned from the sheet brings its own, up to these."""

    #: The id begins so: "LOGIN-001".
    id_prefix: Part = 0.95
    #: The title begins with the module: "[Login] …", "【登录】…", "Login: …".
    bracket: Part = 0.95
    #: The sheet is named so.
    sheet: Part = 0.9
    pattern: Part = 0.9
    keyword: Part = 0.8
    #: The title holds the name of a module, or an alias.
    name: Part = 0.75
    #: Words of the title that the cases of one module have.
    learned: Part = 0.7


class Thresholds(Value):
    """When evidence is enough."""

    #: Below it a case is not settled.
    settle: Part = 0.6
    #: Two modules that lie nearer to each other are a conflict.
    margin: Part = 0.1
    #: Of so many given cases something is learned …
    least_cases: Annotated[int, Field(ge=2)] = 3
    #: … if so many of them agree.
    least_agreement: Part = 0.9
    #: Keywords found beside the title count so much of their confidence.
    beside_title: Part = 0.8


class ModuleRule(Value):
    """One module."""

    name: Text
    #: Other names of it in the sheet.
    aliases: Texts = ()
    keywords: Texts = ()
    patterns: Texts = ()
    id_prefixes: Texts = ()
    #: Where it differs from that of all modules.
    confidence: Confidence | None = None

    @field_validator("patterns")
    @classmethod
    def _are_safe(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            try:
                safe_pattern(pattern)
            except UnsafePattern as error:
                raise ValueError(f"{error.rule}, got {pattern!r}") from None
            except re.error as error:
                raise ValueError(f"must be regular expressions ({error}), got {pattern!r}") from None
        return patterns


class Rules(Value):
    """All rules. Without modules only the sheet itself tells modules."""

    version: Annotated[int, Field(ge=1, le=1)] = 1
    confidence: Confidence = Confidence()
    thresholds: Thresholds = Thresholds()
    modules: Annotated[tuple[ModuleRule, ...], Field(max_length=500)] = ()

    @model_validator(mode="after")
    def _names_are_told_once(self) -> Rules:
        owners: dict[str, str] = {}
        for module in self.modules:
            for name in (module.name, *module.aliases):
                owner = owners.setdefault(name.casefold(), module.name)
                if owner != module.name:
                    raise ValueError(f"must name each module once: {name!r} is of {owner!r} and of {module.name!r}")
        return self

    def confidence_of(self, module: ModuleRule) -> Confidence:
        """The confidences that hold for a module."""
        return module.confidence or self.confidence


@lru_cache(maxsize=1_000)
def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of a rule, compiled once."""
    return safe_pattern(pattern)


#: What holds where no file is given: no module is known before the sheet names it.
DEFAULT_RULES = Rules()
