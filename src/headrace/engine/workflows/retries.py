"""The retry policy of a node, as the engine's retries know it."""

from __future__ import annotations

from headrace.model.backoff import Backoff
from headrace.model.graph.nodes import RetryRule


def backoff_of(rule: RetryRule) -> Backoff:
    """Return the policy of a rule.

    >>> from datetime import timedelta
    >>> backoff_of(RetryRule("linear", base=timedelta(seconds=2), jitter=False)).delay(failures=3, random=0.5)
    datetime.timedelta(seconds=6)
    """
    return Backoff(
        base=rule.base,
        cap=max(rule.cap, rule.base),
        factor=2.0 if rule.strategy == "exponential_backoff" else 1.0,
        linear=rule.strategy == "linear",
        jitter=rule.jitter,
        max_attempts=rule.max_tries,
        only=rule.on,
    )
