"""What an extraction would ask, without asking: the asking code runs whole, before a model that only takes notes.

So a plan cannot differ from what is asked later, but for what depends on answers: a weak model is asked a second time
only where its first answer does not stand in the text, and a plan counts both.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
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


@dataclass(frozen=True, slots=True)
class Guess:
    """A forecast where the model has none: nothing is remembered, and neither price nor pace is known."""

    remembered: Sequence[bool]
    input_tokens: int
    output_tokens: int
    cost_nano: int | None = None
    duration: timedelta | None = None
    binding: str | None = None

    def __add__(self, other: Foreseen) -> Foreseen:
        """Both together: what one of them does not know is not known, and nothing adds nothing."""
        if not self.remembered:
            return other
        if not other.remembered:
            return self
        longer = max((self, other), key=lambda one: one.duration or timedelta())
        unknown = self.duration is None or other.duration is None
        return Guess(
            (*self.remembered, *other.remembered),
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            None if self.cost_nano is None or other.cost_nano is None else self.cost_nano + other.cost_nano,
            None if unknown else longer.duration,
            longer.binding,
        )

    __radd__ = __add__


#: Nothing costs nothing, which is known.
NOTHING = Guess((), 0, 0, cost_nano=0, duration=timedelta())


@dataclass
class Planner:
    """Adds up what documents would take."""

    template: Template
    llm: LanguageModel
    second: Second | None = None
    _documents: list[DocumentPlan] = field(default_factory=list)
    _without_text: list[str] = field(default_factory=list)
    #: Of all that was planned so far, of both models: so quotas and budgets are judged once, by the whole.
    _foreseen: Foreseen = NOTHING

    async def estimate(self, documents: Sequence[FoundDocument]) -> Estimate:
        """Read the documents and plan them; a model that can forecast says what is remembered, the money and the time.

        Raises what the forecast raises.
        """
        for start in range(0, len(documents), SLICE):
            await self._add(documents[start : start + SLICE])
        planned = Estimate.of_plans(self._documents)
        return replace(
            planned,
            input_tokens=self._foreseen.input_tokens,
            output_tokens=self._foreseen.output_tokens,
            cost_nano=self._foreseen.cost_nano,
            # Where nothing is asked it is known how long that takes, even at an unknown pace, and nothing bounds it.
            duration=self._foreseen.duration if planned.calls else timedelta(),
            binding=self._foreseen.binding if planned.calls else None,
            without_text=tuple(self._without_text),
        )

    async def plans(self, documents: Sequence[FoundDocument]) -> list[DocumentPlan]:
        """What each document would take if nothing were remembered; those that give no text are left out."""
        gate = asyncio.Semaphore(READERS)
        found = [plan for document in documents if (plan := await self._plan(document, gate)) is not None]
        return [_counted(plan.document_id, [*plan.first, *plan.second], reused=0) for plan in found]

    async def _add(self, documents: Sequence[FoundDocument]) -> None:
        gate = asyncio.Semaphore(READERS)
        plans = await asyncio.gather(*(self._plan(document, gate) for document in documents))
        readable = [plan for plan in plans if plan is not None]
        self._without_text += [found.document_id for found, plan in zip(documents, plans, strict=True) if plan is None]
        first = await _forecast(self.llm, [ask for plan in readable for ask in plan.first])
        second = await _forecast(
            self.second.llm if self.second else self.llm, [ask for plan in readable for ask in plan.second]
        )
        self._documents += _counts(readable, first.remembered, second.remembered)
        self._foreseen = self._foreseen + first + second

    async def _plan(self, found: FoundDocument, gate: asyncio.Semaphore) -> Plan | None:
        async with gate:
            document = await asyncio.to_thread(read_document, Path(found.path), name=found.name)
            if isinstance(document, Unreadable):
                return None
            return await plan_document(document, self.template, self.llm, second=self.second)


async def _forecast(llm: LanguageModel, asks: Sequence[PlannedAsk]) -> Foreseen:
    if not asks:
        return NOTHING
    if isinstance(llm, Forecast):
        return await llm.estimate(asks)
    inputs, outputs = sum(map(input_tokens, asks)), sum(ask.expected_output_tokens for ask in asks)
    return Guess((False,) * len(asks), inputs, outputs)


def input_tokens(ask: PlannedAsk) -> int:
    """About how many tokens an ask has, its schema included."""
    schema = json.dumps(ask.shape.model_json_schema()) if ask.shape is not None else ""
    words = [ask.system, ask.prompt, schema, *(message["content"] for message in ask.messages)]
    return sum(estimated_tokens(text) for text in words if text)


def _counts(plans: Sequence[Plan], first: Sequence[bool], second: Sequence[bool]) -> Iterator[DocumentPlan]:
    """What each document takes; `first` and `second`: which asks of all documents are remembered."""
    known_first, known_second = iter(first), iter(second)
    for plan in plans:
        remembered = [(ask, next(known_first)) for ask in plan.first]
        remembered += [(ask, next(known_second)) for ask in plan.second]
        paid = [ask for ask, known in remembered if not known]
        yield _counted(plan.document_id, paid, reused=len(remembered) - len(paid))


def _counted(document_id: str, paid: Sequence[PlannedAsk], *, reused: int) -> DocumentPlan:
    return DocumentPlan(
        document_id,
        calls=len(paid),
        reused=reused,
        input_tokens=sum(map(input_tokens, paid)),
        output_tokens=sum(ask.expected_output_tokens for ask in paid),
    )
