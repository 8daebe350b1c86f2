"""What model calls cost: tokens, paid calls, and answers that were reused for nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and calls of one or more asks. Addable.

    >>> Usage(input_tokens=10, output_tokens=2, calls=1) + Usage(reused=1)
    Usage(input_tokens=10, output_tokens=2, calls=1, reused=1)
    """

    #: Tokens of the prompts that were paid for.
    input_tokens: int = 0
    #: Tokens of the answers that were paid for.
    output_tokens: int = 0
    #: Calls a provider answered.
    calls: int = 0
    #: Answers taken from the memo, or shared with an equal ask in flight; they cost nothing.
    reused: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.calls + other.calls,
            self.reused + other.reused,
        )

    def to_json(self) -> dict[str, int]:
        """The counts as a JSON-able mapping."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Usage:
        """The inverse of `to_json`; missing counts are 0 and unknown keys are ignored."""
        return cls(**{name: int(data.get(name) or 0) for name in cls.__slots__})


class UsageMeter:
    """Adds up the usage of one attempt. The engine sets one per attempt, the LLM call adds to it.

    >>> meter = UsageMeter(); meter.add(Usage(calls=1)); meter.total.calls
    1
    """

    __slots__ = ("_on_paid", "total")

    def __init__(self, on_paid: Callable[[], None] | None = None) -> None:
        """`on_paid` is called after each ask that was paid for, and so has its answer stored."""
        self.total = Usage()
        self._on_paid = on_paid

    def add(self, usage: Usage) -> None:
        """Add one ask's usage."""
        self.total += usage
        if usage.calls and self._on_paid is not None:
            self._on_paid()

    def to_json(self) -> dict[str, int]:
        """The total as a JSON-able mapping, as stored with the attempt."""
        return self.total.to_json()


#: The meter of the attempt that runs here; None outside of an attempt.
current_meter: ContextVar[UsageMeter | None] = ContextVar("headrace_usage_meter", default=None)
