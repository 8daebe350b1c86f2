"""Scripted language models for the tests of papers: one answers JSON, one goes on with a line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel

from headrace.model.usage import Usage

M = TypeVar("M", bound=BaseModel)
COST = Usage(input_tokens=100, output_tokens=10, calls=1)


@dataclass(frozen=True)
class Said:
    """An answer of a scripted model."""

    value: Any = None
    text: str = ""
    usage: Usage = COST


@dataclass
class CapableModel:
    """Answers each prompt with what `script` returns for it, read as the asked shape."""

    script: Callable[[str], Mapping[str, Any]]
    style: str = "strict_schema"
    model_name: str = "capable-1"
    prompts: list[str] = field(default_factory=list)

    async def extract_detailed(
        self, model: type[M], *, prompt: str, system: str | None = None, temperature: float = 0.0
    ) -> Said:
        """Return the scripted answer."""
        assert system
        self.prompts.append(prompt)
        return Said(value=model.model_validate(self.script(prompt)))

    async def complete_detailed(self, **_: Any) -> Said:
        """Fail: a capable model is not asked plainly."""
        raise AssertionError("a capable model was asked plainly")


@dataclass
class WeakModel:
    """Goes on with the line that begins with a label, as `script` says for label and text."""

    script: Callable[[str, str], str]
    style: str = "plain"
    model_name: str = "weak-1"
    asked: list[tuple[str, str]] = field(default_factory=list)

    async def complete_detailed(
        self,
        *,
        messages: Sequence[Mapping[str, str]],
        stop: str | None = None,
        max_tokens: int | None = None,
        temperature: float = 0.0,
    ) -> Said:
        """Return the scripted line."""
        assert stop == "\n"
        assert max_tokens
        assert temperature == 0.0
        text, label = messages[-2]["content"], messages[-1]["content"]
        self.asked.append((label, text))
        return Said(text=self.script(label, text))

    async def extract_detailed(self, *_: Any, **__: Any) -> Said:
        """Fail: a weak model is not asked for JSON."""
        raise AssertionError("a weak model was asked for JSON")


def answer(value: Any = None, *numbers: int, status: str = "found", note: str | None = None) -> dict[str, Any]:
    """Return what a capable model says of one field."""
    return {"status": status, "sentences": list(numbers), "value": value, "note": note}


def silent() -> dict[str, Any]:
    """Return what a capable model says of a field the document does not speak of."""
    return answer(status="not_reported")
