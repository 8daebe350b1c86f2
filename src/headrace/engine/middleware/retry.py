"""Retry: turns exceptions and `Retry` outcomes into a decision of the task's backoff."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from headrace.engine.attempt import Attempt, Failed, Proceed, describe, retry_outcome
from headrace.model.durations import parse_duration
from headrace.model.errors import ExecutorCrashedError, HeadraceError
from headrace.model.outcome import Retry


class RetryMiddleware:
    """The outermost middleware: after it an attempt has ended with a value."""

    def __init__(self, random_number: Callable[[], float] = random.random) -> None:
        self._random = random_number

    async def __call__(self, attempt: Attempt, proceed: Proceed) -> Any:
        """Run the attempt; return its value, or Failed with the time of the next try."""
        try:
            ending = await proceed(attempt)
        except ExecutorCrashedError as error:
            # The child died, not the handler's logic: counted as a crash, which the poison rule bounds.
            return Failed(describe(error), timedelta(), lone_crash=True, progressed=error.progressed)
        except Exception as error:
            return Failed(
                describe(error, with_trace=not isinstance(error, HeadraceError)), self._decide(attempt, error)
            )
        if isinstance(ending, Retry):
            return Failed(retry_outcome(ending), self._asked(attempt, ending))
        return ending

    def _decide(self, attempt: Attempt, error: Exception) -> timedelta | None:
        failures = attempt.job.failures + 1
        if failures >= attempt.job.max_attempts:
            return None
        return attempt.task.backoff.decide(error, failures=failures, random=self._random())

    def _asked(self, attempt: Attempt, outcome: Retry) -> timedelta | None:
        failures = attempt.job.failures + 1
        if failures >= attempt.job.max_attempts:
            return None
        if outcome.delay is not None:
            return parse_duration(outcome.delay, field="Retry.delay")
        return attempt.task.backoff.delay(failures=failures, random=self._random())
