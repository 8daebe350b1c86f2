"""What model calls cost: tokens, money, paid calls, and answers that were reused for nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, calls and money of one or more asks. Addable.

    >>> Usage(input_tokens=10, output_tokens=2, calls=1) + Usage(reused=1)
    Usage(input_tokens=10, output_tokens=2, calls=1, reused=1, cached_tokens=0, cost_nano=0, unpriced=0)
    """

    #: Tokens of the prompts that were paid for, cached ones included.
    input_tokens: int = 0
    #: Tokens of the answers that were paid for.
    output_tokens: int = 0
    #: Calls a provider answered.
    calls: int = 0
    #: Answers taken from the memo, or shared with an equal ask in flight; they cost nothing.
    reused: int = 0
    #: Those of the input tokens that the provider read from its cache, at a lower price.
    cached_tokens: int = 0
    #: What the calls with a known price cost, in nanodollars (see `model/money.py`).
    cost_nano: int = 0
    #: Calls whose price is not known: what they cost is not in `cost_nano`.
    unpriced: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, name) + getattr(other, name) for name in _COUNTS))

    @property
    def tokens(self) -> int:
        """Tokens of prompts and answers together."""
        return self.input_tokens + self.output_tokens

    @property
    def cost(self) -> int | None:
        """What all of it cost, in nanodollars; None where the price of a call is not known.

        >>> Usage(calls=1, cost_nano=5).cost, Usage(calls=2, cost_nano=5, unpriced=1).cost
        (5, None)
        """
        return None if self.unpriced else self.cost_nano

    def to_json(self) -> dict[str, int]:
        """The counts as a JSON-able mapping; those that are new since the first version only where they are not 0."""
        counts = {name: getattr(self, name) for name in _COUNTS}
        return {name: count for name, count in counts.items() if count or name in _ALWAYS}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Usage:
        """The inverse of `to_json`; missing counts are 0 and unknown keys are ignored."""
        return cls(**{name: int(data.get(name) or 0) for name in _COUNTS})


_COUNTS = tuple(field.name for field in fields(Usage))
_ALWAYS = frozenset({"input_tokens", "output_tokens", "calls", "reused"})


class UsageMeter:
    """Adds up the usage of one attempt. The engine sets one per attempt, the LLM call adds to it.

    >>> meter = UsageMeter(); meter.add(Usage(calls=1)); meter.total.calls
    1
    """

    __slots__ = ("_on_paid", "total")

    def __init__(self, on_paid: Callable[[], Awaitable[None]] | None = None) -> None:
        """`on_paid` is called after each ask that was paid for, and so has its answer stored."""
        self.total = Usage()
        self._on_paid = on_paid

    def add(self, usage: Usage) -> None:
        """Add what was billed before, or costs nothing."""
        self.total += usage

    async def bill(self, usage: Usage) -> None:
        """Add one ask's usage, before who asked has the answer."""
        self.total += usage
        if usage.calls and self._on_paid is not None:
            await self._on_paid()

    def to_json(self) -> dict[str, int]:
        """The total as a JSON-able mapping, as stored with the attempt."""
        return self.total.to_json()


#: The meter of the attempt that runs here; None outside of an attempt.
current_meter: ContextVar[UsageMeter | None] = ContextVar("headrace_usage_meter", default=None)
