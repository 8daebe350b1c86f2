"""What the quota engine tells its callers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta


class QuotaWait(Exception):
    """A pool lets the call pass only after a longer wait than the caller has; it was not sent."""

    def __init__(self, wait: timedelta, pool: str, *, too_large: bool = False) -> None:
        super().__init__(f"the quota {pool} lets the next call pass in {wait.total_seconds():.1f} s")
        #: how long it takes at least, from now
        self.wait = wait
        self.pool = pool
        #: what is waited for, in words that end "it waits for …"
        self.reason = f"the quota of {pool}"
        if too_large:
            self.reason += (
                ", of which this one call takes more than flows in five minutes: raise the limits of the pool, or ask "
                "for less at once (a shorter prompt, max_tokens)"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStats:
    """One pool as this process sees it; counts are since it was first used here."""

    name: str
    #: units that answered calls used, by dimension
    used: Mapping[str, float] = field(default_factory=dict)
    #: calls that were let pass
    reserved: int = 0
    #: calls that had to wait, and for how long together
    waits: int = 0
    waited: timedelta = timedelta()
    waiting: int = 0
    in_flight: int = 0
    #: calls the provider refused (429), and answers that it has too much to do
    refused: int = 0
    overloaded: int = 0
    #: for how much longer nothing passes
    closed: timedelta = timedelta()
    #: after a closing: one call goes ahead to see whether the next are let through
    probing: bool = False
    #: units per second that flow now, over all processes; less than the limits say where less was learnt
    flows: Mapping[str, float] = field(default_factory=dict)
    #: the flow as a part of what the limits allow; where those are unknown, requests per second
    learnt: float = 1.0
    #: units taken from the limiter and not used yet
    leased: Mapping[str, float] = field(default_factory=dict)


def gate_name(pool: str) -> str:
    """Return the bucket that is closed while a pool lets nothing pass, for all processes.

    Another than that of `pool_gate`, which holds back jobs also while the pool is open and only too long a line waits.

    >>> gate_name("openai:main:small")
    'pool:openai:main:small'
    """
    return f"pool:{pool}"
