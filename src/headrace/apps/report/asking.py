"""One question to the model: bounded in time, within budgets, and not at all while the model is away."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from pydantic import BaseModel

from headrace import (
    BadOutputError,
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

M = TypeVar("M", bound=BaseModel)

#: What says that the model is away, and nothing of the question.
_AWAY = (OverloadedError, ProviderAuthError, ProviderTimeoutError, ProviderUnavailableError)


#: How often what is wrong with an answer is asked again within a try: a report asks so much that each costs.
REPAIRS = 1
#: The model that comes with Headrace takes half a minute for one of these questions, and answers wrongly.
_BUILT_IN = "local"


class NoModelError(HeadraceError):
    """No model is configured that could answer: the built-in one is too small. Set [llm], then resume the report."""

    code = "no_model"


async def ask(shape: type[M], *, system: str, prompt: str, max_tokens: int) -> Extraction[M]:
    """Return a valid answer with what it took.

    Raises NoModelError, ModelAwayError and BudgetUsedUpError at once, ProviderError: those that are transient are for
    the task's retry policy.
    """
    WATCH.check()
    llm = app.llm.using(on_budget="fail")
    if llm.provider_name == _BUILT_IN:
        raise NoModelError
    try:
        async with asyncio.timeout(SOFT) as limit:
            found = await llm.extract_detailed(
                shape, system=system, prompt=prompt, max_tokens=max_tokens, repairs=REPAIRS
            )  # fmt: skip
    except _AWAY:
        WATCH.failed()
        raise
    except TimeoutError:
        if not limit.expired():
            raise
        WATCH.failed()
        raise ProviderTimeoutError(f"no answer within {SOFT:g} s") from None
    except (BadOutputError, RefusedError):
        WATCH.answered()
        raise
    WATCH.answered()
    return found


def usage_of(found: Extraction[Any]) -> dict[str, int]:
    """Return what an answer took, as JSON."""
    return found.usage.to_json()
