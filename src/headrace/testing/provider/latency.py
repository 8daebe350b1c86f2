"""How long a scripted model takes: a time to the first token, then a steady rate."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from headrace.model.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class Latency:
    """The latency model. The default answers at once.

    >>> Latency(timedelta(seconds=0.4), tokens_per_second=100).total(60)
    1.0
    """

    first_token: timedelta = timedelta(0)
    #: 0 means without limit.
    tokens_per_second: float = 0.0
    #: Tokens that a stream sends in one event, when the last of them is due: fewer events cost less on both sides.
    tokens_per_event: int = 1

    def __post_init__(self) -> None:
        if self.tokens_per_event < 1:
            raise InvalidInputError("latency tokens per event", "must be at least 1", self.tokens_per_event)

    @classmethod
    def parse(cls, text: str) -> Latency:
        """Read `FIRST_TOKEN_SECONDS[,TOKENS_PER_SECOND[,TOKENS_PER_EVENT]]`, for example `0.4,100`."""
        first, rate, each = (*text.split(",", 2), "", "")[:3]
        try:
            return cls(timedelta(seconds=float(first)), float(rate or 0), int(each or 1))
        except ValueError:
            raise InvalidInputError("latency", "must look like 0.4, 0.4,100 or 0.4,100,5", text) from None

    def per_token(self) -> float:
        """Seconds for each token after the first."""
        return 1 / self.tokens_per_second if self.tokens_per_second > 0 else 0.0

    def total(self, tokens: int) -> float:
        """Seconds until an answer of so many tokens is whole."""
        return self.first_token.total_seconds() + tokens * self.per_token()
