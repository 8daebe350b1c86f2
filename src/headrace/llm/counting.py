"""What the gateway of one process counts of itself, by the names of docs/reference/metrics.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from headrace.llm.quota import PoolStats

MEMO_HITS = "headrace.llm.memo_hits"
SHARED = "headrace.llm.shared"
#: Nanodollars that stored and shared answers cost when they were bought, where that is known.
SAVED = "headrace.llm.saved_nano"
PARKED = "headrace.llm.parked"
RATE_LIMITED = "headrace.llm.rate_limited"
POOLS = "headrace.llm.pools"


class Tally(Counter[str]):
    """Counts of one process, by name."""


def snapshot(tally: Tally, pools: Iterable[PoolStats]) -> dict[str, Any]:
    """Return all of it as JSON-able values: what the process's session tells with each heartbeat."""
    return {**tally, POOLS: [_pool(stats) for stats in pools]}


def _pool(stats: PoolStats) -> dict[str, Any]:
    return {
        "name": stats.name,
        "used": dict(stats.used),
        "reserved": stats.reserved,
        "waits": stats.waits,
        "waited_seconds": stats.waited.total_seconds(),
        "waiting": stats.waiting,
        "in_flight": stats.in_flight,
        "refused": stats.refused,
        "overloaded": stats.overloaded,
        "closed_seconds": stats.closed.total_seconds(),
        "probing": stats.probing,
        "flows": dict(stats.flows),
        "learnt": stats.learnt,
    }
