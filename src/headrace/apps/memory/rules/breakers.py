"""A breaker for each kind of work: it opens when more than half of more than 10 calls of a minute failed."""

from __future__ import annotations

from headrace import Breaker
from headrace.apps.memory.rules.priority import KIND_WEIGHTS

#: More than 10, in whole calls.
LEAST_CALLS = 11
ERROR_RATE = 0.5

#: By kind, for `@app.task(breaker=BREAKERS["process"])`; jobs behind an open one wait. See
#: docs/howto/limit-rates-and-concurrency.md.
BREAKERS = {
    kind: Breaker(
        f"memory_{kind}",
        # A run of failures opens it no sooner than the rate does.
        failures=LEAST_CALLS,
        error_rate=ERROR_RATE,
        min_calls=LEAST_CALLS,
        window="1m",
        cooldown="30s",
        on_open="wait",
    )
    for kind in KIND_WEIGHTS
}
