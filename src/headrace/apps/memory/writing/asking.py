"""Questions to the model, each a checkpoint: what was answered once is never asked again by the same job.

A checkpoint is named after what is asked, by its words: where a profile has changed meanwhile, the old answer is not
taken for the new question.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from pydantic import BaseModel

from headrace import BadOutputError, ContextTooLongError, HeadraceError, RefusedError
from headrace.apps.memory.writing.language import Language
from headrace.apps.memory.writing.prompts import PROMPT_VERSION, Name, common, question, system_of
from headrace.apps.memory.writing.terms import Terms

if TYPE_CHECKING:
    from headrace.llm.gateway import LLM

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
U = TypeVar("U")

TEMPERATURE = 0.2
#: The style of models that are asked field by field, as the one that comes with Headrace.
_PLAIN = "plain"
#: There is no answer of use to this question, for good.
USELESS = (BadOutputError, RefusedError, ContextTooLongError)


class NoModelError(HeadraceError):
    """No model is configured that could make memory: one that answers plainly is too small. Set [llm]."""

    code = "no_model"


class Step(Protocol):
    """Runs a function once per job: `Context.step`."""

    def __call__(self, name: str, run: Callable[[], Awaitable[Any]], /) -> Awaitable[Any]:
        """Return what the function gave, be it now or in an earlier attempt."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One question."""

    #: What its checkpoint is called, with a digest of its words behind it.
    name: str
    system: str
    prompt: str
    max_tokens: int

    @property
    def step(self) -> str:
        """The name of its checkpoint.

        >>> Ask("merge", "system", "prompt", 100).step.partition("-")[0]
        'merge'
        """
        said = "\0".join([PROMPT_VERSION, self.system, self.prompt])
        return f"{self.name}-{hashlib.sha256(said.encode('utf-8', 'replace')).hexdigest()[:12]}"


def ask_for(
    terms: Terms, name: Name, language: Language, room: int, *data: Iterable[Mapping[str, Any]], **told: object
) -> Ask:
    """Return the question of a task about these data; the answer has at most `room` tokens."""
    return Ask(name, system_of(name, language, terms, **told), question(name, language, *data), room)


def reminded(ask: Ask, language: Language) -> Ask:
    """Return a question again, for an answer to it came in another language."""
    return replace(ask, prompt=f"{ask.prompt}\n{common(language)['wrong_language']}")


@dataclass(frozen=True, slots=True)
class Answered(Generic[M]):
    """The items of an answer that are valid."""

    values: tuple[M, ...]
    #: How many stayed invalid after they were asked for again.
    lost: int = 0
    #: False where the answer was cut and the rest could not be had.
    is_complete: bool = True

    @property
    def is_empty_handed(self) -> bool:
        """Whether the model said something, and nothing of it can be read."""
        return not self.values and (self.lost > 0 or not self.is_complete)


@dataclass(eq=False)
class Asking:
    """Asks the model. `sample`: 0, or another number to buy other answers than those that were useless before."""

    llm: LLM
    step: Step
    sample: int = 0
    _answers: dict[str, Any] = field(default_factory=dict)

    async def items(self, ask: Ask, shape: type[M], *, expected: int | None = None) -> Answered[M]:
        """Return the valid items of an answer. Raises RefusedError, NoModelError, other ProviderErrors."""

        async def run() -> Any:
            found = await self.llm.extract_items(
                shape, system=ask.system, prompt=ask.prompt, expected=expected, max_tokens=ask.max_tokens,
                temperature=TEMPERATURE, sample=self.sample,
            )  # fmt: skip
            values = [value.model_dump(mode="json") for value in found.values]
            return {"values": values, "lost": len(found.needs_review), "complete": found.is_complete}

        told = await self._once(ask, run)
        values = tuple(shape.model_validate(value) for value in told["values"])
        return Answered(values, told["lost"], told["complete"])

    async def one(self, ask: Ask, shape: type[M]) -> M:
        """Return the one object of an answer. Raises BadOutputError and as `items` does."""

        async def run() -> Any:
            found = await self.llm.extract(
                shape, system=ask.system, prompt=ask.prompt, max_tokens=ask.max_tokens, temperature=TEMPERATURE,
                sample=self.sample,
            )  # fmt: skip
            return found.model_dump(mode="json")

        return shape.model_validate(await self._once(ask, run))

    async def _once(self, ask: Ask, run: Callable[[], Awaitable[Any]]) -> Any:
        # A checkpoint may be used once per handler, and two merges may ask the same.
        if ask.step not in self._answers:
            if self.llm.style.value == _PLAIN:
                raise NoModelError
            self._answers[ask.step] = await self.step(ask.step, run)
        return self._answers[ask.step]


async def all_of(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return what all of it gave. One that fails lets the others end first: their answers are paid, and kept."""
    found = await asyncio.gather(*work, return_exceptions=True)
    for one in found:
        if isinstance(one, BaseException):
            raise one
    return [one for one in found if not isinstance(one, BaseException)]


async def both(one: Coroutine[Any, Any, T], other: Coroutine[Any, Any, U]) -> tuple[T, U]:
    """Return what two of different kinds gave, as `all_of` does."""
    found: list[Any] = await all_of([one, other])
    return found[0], found[1]
