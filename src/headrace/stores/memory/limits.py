"""What the gate knows besides the jobs: caps, buckets, breakers, shares, and which queues are gated."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from headrace.model.admission import LimitKind
from headrace.model.limits import Gate, key_cap
from headrace.stores.memory.breakers import Breaker
from headrace.stores.memory.buckets import Buckets
from headrace.stores.memory.shares import Shares

_QUEUE_LIMIT = "queue:"


@dataclass(slots=True)
class Limits:
    """Tables of the gate. A queue that was gated once stays so."""

    gated: set[str] = field(default_factory=set)
    declared_caps: dict[str, int] = field(default_factory=dict)
    cap_overrides: dict[str, int] = field(default_factory=dict)
    buckets: Buckets = field(default_factory=Buckets)
    breakers: dict[str, Breaker] = field(default_factory=dict)
    shares: dict[str, Shares] = field(default_factory=lambda: defaultdict(Shares))

    def cap(self, key: str) -> int | None:
        """Return the cap in force; None: it limits nothing."""
        return self.cap_overrides.get(key, self.declared_caps.get(key))

    def key_cap(self, queue: str, gate: Gate) -> int | None:
        """Return how many jobs may run with the concurrency key of a gate: an operator's cap, or their own limit."""
        return None if gate.key is None else self.cap_overrides.get(key_cap(queue, gate.key), gate.key_limit)

    def forget(self, name: str) -> frozenset[LimitKind]:
        """Remove what limits by this name, and return what it was."""
        tables: dict[LimitKind, tuple[dict[str, Any], ...]] = {
            LimitKind.CAP: (self.declared_caps, self.cap_overrides),
            LimitKind.RATE: (self.buckets,),
            LimitKind.BREAKER: (self.breakers,),
        }
        found = frozenset(kind for kind, rows in tables.items() if any(name in row for row in rows))
        for row in (row for kind in found for row in tables[kind]):
            row.pop(name, None)
        return found

    def gate_queue_of(self, name: str) -> None:
        """Make a queue gated whose cap or rate this is."""
        if name.startswith(_QUEUE_LIMIT):
            self.gated.add(name.removeprefix(_QUEUE_LIMIT))
