"""One question to the model: bounded in time, within budgets, and not at all while the model is away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel

from headrace import (
    BadOutputError,
    Context,
    Extraction,
    HeadraceError,
    OverloadedError,
    ProviderAuthError,
    ProviderTimeoutError,
    ProviderUnavailableError,
    RefusedError,
)
from headrace.apps.report.model_watch import WATCH
from headrace.apps.report.opening import SOFT, app

if TYPE_CHECKING:
    from headrace.llm.gateway import LLM

M = TypeVar("M", bound=BaseModel)

#: What says that the model is away, and nothing of the question.
_AWAY = (OverloadedError, ProviderAuthError, ProviderTimeoutError, ProviderUnavailableError)


#: How often what is wrong with an answer is asked again within a try: a report has many questions.
REPAIRS = 1
#: The model that comes with Headrace takes half a minute for one of these questions, and answers wrongly.
_BUILT_IN = "local"


class NoModelError(HeadraceError):
    """No model is configured that could answer: the built-in one is too small. Set [llm], then resume the report."""

    code = "no_model"


class UnfoundedError(HeadraceError):
    """Nothing of the answer rests on the file. Resume the report: it is asked for anew."""

    code = "unfounded"


#: The model answered, and what it said is of no use: the memo would give the same for ever.
_USELESS = (BadOutputError, RefusedError, UnfoundedError)


@dataclass(frozen=True, slots=True)
class Question(Generic[M]):
    """What is asked, and what counts as an answer."""

    shape: type[M]
    system: str
    prompt: str
    max_tokens: int
    #: Whether a valid answer rests on something; one that does not is none.
    is_founded: Callable[[M], bool] = lambda _answer: True


async def ask(question: Question[M], ctx: Context) -> Extraction[M]:
    """Return a valid answer that is founded, with what it took.

    A report that is resumed buys another answer in the place of a useless one. Raises NoModelError, ModelAwayError and
    BudgetUsedUpError at once, UnfoundedError, ProviderError: those that are transient are for the task's retry policy.
    """
    WATCH.check()
    llm = app.llm.using(on_budget="fail")
    if llm.provider_name == _BUILT_IN:
        raise NoModelError
    try:
        async with asyncio.timeout(SOFT) as limit:
            found = await _answered(llm, question, ctx)
    except _AWAY:
        WATCH.failed()
        raise
    except TimeoutError:
        if not limit.expired():
            raise
        WATCH.failed()
        raise ProviderTimeoutError(f"no answer within {SOFT:g} s") from None
    except _USELESS:
        WATCH.answered()
        raise
    WATCH.answered()
    return found


async def _answered(llm: LLM, question: Question[M], ctx: Context) -> Extraction[M]:
    try:
        # What an earlier run bought is stored under this sample: be it good or useless, it costs nothing.
        return await _sampled(llm, question, 0)
    except _USELESS:
        number = await _number_of_run(ctx)
        if not number:
            raise
    return await _sampled(llm, question, number)


async def _sampled(llm: LLM, question: Question[M], sample: int) -> Extraction[M]:
    found = await llm.extract_detailed(
        question.shape, system=question.system, prompt=question.prompt, max_tokens=question.max_tokens,
        sample=sample, repairs=REPAIRS,
    )  # fmt: skip
    if not question.is_founded(found.value):
        raise UnfoundedError
    return found


async def _number_of_run(ctx: Context) -> int:
    """Return how many runs of the report there were before this one: N of its key JOB/N, and 1 of a repeated run
    without one."""
    assert ctx.run is not None
    run = await app.find_run(ctx.run.id).view()
    number = (run.key or "").rpartition("/")[2]
    return int(number) if number.isdecimal() else int(run.rerun_of is not None)


def usage_of(found: Extraction[Any]) -> dict[str, int]:
    """Return what an answer took, as JSON."""
    return found.usage.to_json()
