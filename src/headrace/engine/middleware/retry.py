"""Retry: turns exceptions and `Retry` outcomes into a decision of the task's backoff."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from headrace.engine.attempt import Attempt, Failed, Proceed, asked, describe
from headrace.engine.context import engine_log
from headrace.model.durations import parse_duration
from headrace.model.errors import ExecutorCrashedError, ExecutorLostError, HeadraceError
from headrace.model.outcome import Retry, Snooze

#: When a job runs again whose farm was lost: it has another one, or none, and then it waits to be claimed.
AGAIN = timedelta(seconds=1)


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
            again = None if attempt.task.spec.at_most_once else timedelta()
            return Failed(describe(error), again, lone_crash=True, progressed=error.progressed)
        except ExecutorLostError as error:
            # Nobody's fault: neither a failure nor a crash. What may run once must not run where it may have begun.
            if attempt.task.spec.at_most_once and error.begun:
                return Failed(describe(error), None)
            engine_log(attempt.context).warning("runs again: %s", error)
            # One that nobody began leaves no record: there may be many until somebody does.
            return Failed(describe(error), AGAIN, charged=False) if error.begun else Snooze(AGAIN)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            # SystemExit too: a handler that calls a command line tool must not end its worker.
            # What a handler awaits may be cancelled as well. The task's own count of cancels does not tell: before
            # Python 3.13 a task group of which a member failed leaves it raised.
            if isinstance(error, asyncio.CancelledError) and attempt.stop_reason is not None:
                raise
            trace = not isinstance(error, HeadraceError)
            return Failed(describe(error, with_trace=trace), retry_in(attempt, error, self._random))
        if isinstance(ending, Retry):
            return Failed(asked("retry", "Retry.reason", ending.reason), self._asked(attempt, ending))
        return ending

    def _asked(self, attempt: Attempt, outcome: Retry) -> timedelta | None:
        failures = attempt.job.failures + 1
        if failures >= attempt.job.max_attempts:
            return None
        if outcome.delay is not None:
            return parse_duration(outcome.delay, field="Retry.delay")
        return (attempt.backoff or attempt.task.backoff).delay(failures=failures, random=self._random())


def retry_in(
    attempt: Attempt, error: BaseException, random_number: Callable[[], float] = random.random
) -> timedelta | None:
    """Return how long after an error the attempt's job runs again by its policy; None: never."""
    failures, most = attempt.job.failures + 1, attempt.job.max_attempts
    if failures >= most:
        return None
    # The job may have been enqueued with more attempts than its task has.
    policy = replace(attempt.backoff or attempt.task.backoff, max_attempts=most)
    return policy.decide(error, failures=failures, random=random_number())
