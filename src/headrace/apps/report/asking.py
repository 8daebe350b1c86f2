"""One question to the model: bounded in time, within budgets, and not at all while the model is away."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from pydantic import BaseModel

from headrace import (
    BadOutputError,
    Extraction,
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


async def ask(shape: type[M], *, system: str, prompt: str, max_tokens: int) -> Extraction[M]:
    """Return a valid answer with what it took.

    Raises ModelAwayError and BudgetUsedUpError at once, ProviderError: those that are transient are for the task's
    retry policy.
    """
    WATCH.check()
    llm = app.llm.using(on_budget="fail")
    try:
        async with asyncio.timeout(SOFT) as limit:
            found = await llm.extract_detailed(shape, system=system, prompt=prompt, max_tokens=max_tokens)
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
