"""Breaker: what the end of an attempt says of what stands behind its task's circuit breakers.

An exception is a failure, also one that reached the time limit. It says nothing when it is a 429, or an error of ours:
wrong input, a store that is away, a child process that died. It is a success when the provider answered and only the
request or the answer was bad. Outcomes that a handler chooses (Snooze, Retry, Fail, Cancel) say nothing, nor does an
attempt that was cancelled or released.

A call for several jobs (`batch_size`) is one call: what is behind the breaker was tried once, however many wait for it.
It is a success where its answer to one of them shows that this works, otherwise a failure.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any
from uuid import UUID

from headrace.engine.attempt import Attempt, Proceed
from headrace.engine.breaker_reports import BreakerReports
from headrace.model.breaker import BreakerReport
from headrace.model.errors import HeadraceError, TaskTimeoutError
from headrace.model.job import Completion
from headrace.model.outcome import Cancel, Fail, Retry, Snooze
from headrace.model.provider_errors import (
    BadOutputError,
    InvalidRequestError,
    ProviderError,
    RateLimitedError,
    RefusedError,
)

_TOO_MANY_REQUESTS = 429


class BreakerMiddleware:
    """Stands inside the retry, which turns exceptions into values. Without `reports` it only judges: in a child."""

    def __init__(self, reports: BreakerReports | None = None) -> None:
        self._reports = reports

    def __call__(self, attempt: Attempt, proceed: Proceed) -> Coroutine[Any, Any, Any]:
        """Run the attempt; where its task has breakers, tell them how it ended before anything else is done."""
        gate = attempt.task.spec.gate
        if gate is None or not gate.breakers:
            return proceed(attempt)
        return self._watch(attempt, proceed, gate.breakers)

    async def _watch(self, attempt: Attempt, proceed: Proceed, breakers: tuple[str, ...]) -> Any:
        try:
            ending = await proceed(attempt)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            stopped = attempt.stop_reason is not None
            await self._tell(attempt, breakers, None if stopped else judge_error(error))
            raise
        await self._tell(attempt, breakers, judge_ending(ending))
        return ending

    async def _tell(self, attempt: Attempt, breakers: tuple[str, ...], works: bool | None) -> None:
        attempt.works = works
        if works is None or self._reports is None:
            return
        if (call := attempt.shared) is None:
            await self._reports.send(_reports(breakers, (attempt.job.id, attempt.job.attempt), works))
            return
        if call.report is None:
            works = works or any(judge(ending) for ending in call.endings)
            # While a breaker tries again nothing follows its probe: the probe is the one that joined last.
            call.report = asyncio.ensure_future(self._reports.send(_reports(breakers, call.last, works)))
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([call.report])


def _reports(breakers: tuple[str, ...], fence: tuple[UUID, int], works: bool) -> list[BreakerReport]:
    return [BreakerReport(key, *fence, works) for key in breakers]


def judge(ending: Any) -> bool | None:
    """Return what a value or an error says.

    >>> judge("an answer"), judge(OSError())
    (True, False)
    """
    return judge_error(ending) if isinstance(ending, BaseException) else judge_ending(ending)


def judge_ending(ending: Any) -> bool | None:
    """Return whether a value shows that what was called works; None: it says nothing.

    >>> judge_ending("an answer"), judge_ending(Snooze("1m"))
    (True, None)
    """
    if isinstance(ending, Completion):
        return ending.works
    return None if isinstance(ending, Snooze | Retry | Fail | Cancel) else True


def judge_error(error: BaseException) -> bool | None:
    """Return whether an exception shows that what was called works; None: it says nothing.

    >>> judge_error(OSError()), judge_error(RefusedError()), judge_error(RateLimitedError())
    (False, True, None)
    """
    if isinstance(error, RateLimitedError) or _status(error) == _TOO_MANY_REQUESTS:
        return None
    if isinstance(error, InvalidRequestError | RefusedError | BadOutputError):
        return True
    ours = isinstance(error, HeadraceError) and not isinstance(error, ProviderError | TaskTimeoutError)
    return None if ours else False


def _status(error: BaseException) -> Any:
    """Return the HTTP status that an error of some client library carries, if it does."""
    response = getattr(error, "response", None)
    for place, name in ((error, "status_code"), (error, "status"), (response, "status_code"), (response, "status")):
        if isinstance(status := getattr(place, name, None), int):
            return status
    return None
