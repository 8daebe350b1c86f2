"""What an extraction would ask, without asking: the asking code runs whole, before a model that only takes notes.

So a plan cannot differ from what is asked later, but for what depends on answers: a weak model is asked a second time
only where its first answer does not stand in the text, and a plan counts both.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from headrace.apps.papers.answer_shape import silent_answer
from headrace.apps.papers.asking import Forecast, Foreseen, LanguageModel, PlannedAsk
from headrace.apps.papers.chunks import estimated_tokens
from headrace.apps.papers.documents import FoundDocument, Unreadable, read_document
from headrace.apps.papers.documents.model import Document
from headrace.apps.papers.dual import Second
from headrace.apps.papers.estimate import DocumentPlan, Estimate, typical_answer_tokens
from headrace.apps.papers.extract import extract_document
from headrace.apps.papers.result import TokenCount
from headrace.apps.papers.template import Template

M = TypeVar("M", bound=BaseModel)

#: Documents planned together: their prompts are all held in memory.
SLICE = 50
#: Files read at once.
READERS = 2
#: A weak model goes on with a line; this much of it is typical.
PLAIN_ANSWER_TOKENS = 10


@dataclass(frozen=True, slots=True)
class _Silence:
    """An answer of nobody."""

    value: Any = None
    text: str = ""
    usage: TokenCount = field(default_factory=TokenCount)


@dataclass
class Rehearsal:
    """Stands in for a model: notes what it is asked, and knows nothing."""

    llm: LanguageModel
    template: Template
    asks: list[PlannedAsk] = field(default_factory=list)

    @property
    def style(self) -> str:
        """That of the model it stands in for."""
        return self.llm.style

    @property
    def model_name(self) -> str:
        """That of the model it stands in for."""
        return self.llm.model_name

    async def extract_detailed(
        self, model: type[M], *, prompt: str, system: str | None = None, temperature: float = 0.0
    ) -> Any:
        """Note the ask and find nothing."""
        length = typical_answer_tokens(self.template)
        self.asks.append(
            PlannedAsk(
                shape=model, system=system, prompt=prompt, temperature=temperature, expected_output_tokens=length
            )
        )
        return _Silence(value=model.model_validate(silent_answer(self.template)))

    async def complete_detailed(
        self,
        *,
        messages: Sequence[Mapping[str, str]],
        stop: str | None = None,
        max_tokens: int | None = None,
        temperature: float = 0.0,
    ) -> Any:
        """Note the ask and say nothing."""
        length = min(PLAIN_ANSWER_TOKENS, max_tokens or PLAIN_ANSWER_TOKENS)
        self.asks.append(
            PlannedAsk(
                messages=tuple(messages),
                stop=stop,
                max_tokens=max_tokens,
                temperature=temperature,
                expected_output_tokens=length,
            )
        )
        return _Silence()


@dataclass(frozen=True, slots=True)
class Plan:
    """The asks about one document: those to the model, and those to a second one."""

    document_id: str
    first: tuple[PlannedAsk, ...]
    second: tuple[PlannedAsk, ...] = ()


async def plan_document(
    document: Document, template: Template, llm: LanguageModel, *, second: Second | None = None
) -> Plan:
    """What `extract_document` would ask about a document, in its order."""
    one = Rehearsal(llm, template)
    if second is None:
        await extract_document(document, template, one)
        return Plan(document.document_id, tuple(one.asks))
    other = Rehearsal(second.llm, template)
    await extract_document(document, template, one, second=replace(second, llm=other))
    if second.llm is llm:  # one model, one forecast
        return Plan(document.document_id, (*one.asks, *other.asks))
    return Plan(document.document_id, tuple(one.asks), tuple(other.asks))


@dataclass
class Planner:
    """Adds up what documents would take."""

    template: Template
    llm: LanguageModel
    second: Second | None = None
    # Nothing costs nothing, which is known.
    _estimate: Estimate = field(default=Estimate((), 0, 0, 0, 0, cost_nano=0, duration=timedelta()))

    async def estimate(self, documents: Sequence[FoundDocument]) -> Estimate:
        """Read the documents and plan them; a model that can forecast says what is remembered, the money and the time.

        Raises what the forecast raises.
        """
        for start in range(0, len(documents), SLICE):
            await self._add(documents[start : start + SLICE])
        return self._estimate

    async def plans(self, documents: Sequence[FoundDocument]) -> list[DocumentPlan]:
        """What each document would take if nothing were remembered; those that give no text are left out."""
        gate = asyncio.Semaphore(READERS)
        found = [plan for document in documents if (plan := await self._plan(document, gate)) is not None]
        return [_counted(plan.document_id, [*plan.first, *plan.second], reused=0) for plan in found]

    async def _add(self, documents: Sequence[FoundDocument]) -> None:
        gate = asyncio.Semaphore(READERS)
        plans = await asyncio.gather(*(self._plan(document, gate) for document in documents))
        readable = [plan for plan in plans if plan is not None]
        without_text = tuple(found.document_id for found, plan in zip(documents, plans, strict=True) if plan is None)
        first = await _forecast(self.llm, [ask for plan in readable for ask in plan.first])
        second = await _forecast(
            self.second.llm if self.second else self.llm, [ask for plan in readable for ask in plan.second]
        )
        added = _with_forecasts(readable, first, second)
        self._estimate = _sum(self._estimate, replace(added, without_text=without_text))

    async def _plan(self, found: FoundDocument, gate: asyncio.Semaphore) -> Plan | None:
        async with gate:
            document = await asyncio.to_thread(read_document, Path(found.path), name=found.name)
            if isinstance(document, Unreadable):
                return None
            return await plan_document(document, self.template, self.llm, second=self.second)


@dataclass(frozen=True, slots=True)
class _Guess:
    """A forecast where the model has none: nothing is remembered, and neither price nor pace is known."""

    remembered: Sequence[bool]
    input_tokens: int
    output_tokens: int
    cost_nano: int | None = None
    duration: timedelta | None = None
    binding: str | None = None


async def _forecast(llm: LanguageModel, asks: Sequence[PlannedAsk]) -> Foreseen:
    if not asks:
        return _Guess((), 0, 0, cost_nano=0, duration=timedelta())
    if isinstance(llm, Forecast):
        return await llm.estimate(asks)
    inputs, outputs = sum(map(input_tokens, asks)), sum(ask.expected_output_tokens for ask in asks)
    return _Guess((False,) * len(asks), inputs, outputs)


def input_tokens(ask: PlannedAsk) -> int:
    """About how many tokens an ask has, its schema included."""
    schema = json.dumps(ask.shape.model_json_schema()) if ask.shape is not None else ""
    words = [ask.system, ask.prompt, schema, *(message["content"] for message in ask.messages)]
    return sum(estimated_tokens(text) for text in words if text)


def _with_forecasts(plans: Sequence[Plan], first: Foreseen, second: Foreseen) -> Estimate:
    """The estimate of these plans: counts from the plans, totals as the models foresee them."""
    known_first, known_second = iter(first.remembered), iter(second.remembered)
    counted = []
    for plan in plans:
        remembered = [(ask, next(known_first)) for ask in plan.first] + [
            (ask, next(known_second)) for ask in plan.second
        ]
        paid = [ask for ask, known in remembered if not known]
        counted.append(_counted(plan.document_id, paid, reused=len(remembered) - len(paid)))
    longer = max((first, second), key=lambda one: one.duration or timedelta())
    # Where nothing is asked it is known how long that takes, even at an unknown pace.
    unknown = None if any(plan.calls for plan in counted) else timedelta()
    return replace(
        Estimate.of_plans(counted),
        input_tokens=first.input_tokens + second.input_tokens,
        output_tokens=first.output_tokens + second.output_tokens,
        cost_nano=_both(first.cost_nano, second.cost_nano),
        duration=unknown if first.duration is None or second.duration is None else longer.duration,
        binding=longer.binding,
    )


def _counted(document_id: str, paid: Sequence[PlannedAsk], *, reused: int) -> DocumentPlan:
    return DocumentPlan(
        document_id,
        calls=len(paid),
        reused=reused,
        input_tokens=sum(map(input_tokens, paid)),
        output_tokens=sum(ask.expected_output_tokens for ask in paid),
    )


def _both(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _sum(one: Estimate, other: Estimate) -> Estimate:
    without_text = one.without_text + other.without_text
    if not one.documents or not other.documents:
        return replace(other if other.documents else one, without_text=without_text)
    unknown = one.duration is None or other.duration is None
    return Estimate(
        documents=one.documents + other.documents,
        calls=one.calls + other.calls,
        reused=one.reused + other.reused,
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        cost_nano=_both(one.cost_nano, other.cost_nano),
        duration=None if unknown else (one.duration or timedelta()) + (other.duration or timedelta()),
        binding=max((one, other), key=lambda part: part.duration or timedelta()).binding,
        without_text=without_text,
    )
