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

    @classmethod
    def parse(cls, text: str) -> Latency:
        """Read `FIRST_TOKEN_SECONDS[,TOKENS_PER_SECOND]`, for example `0.4,100`."""
        first, _, rate = text.partition(",")
        try:
            return cls(timedelta(seconds=float(first)), float(rate or 0))
        except ValueError:
            raise InvalidInputError("latency", "must look like 0.4 or 0.4,100", text) from None

    def per_token(self) -> float:
        """Seconds for each token after the first."""
        return 1 / self.tokens_per_second if self.tokens_per_second > 0 else 0.0

    def total(self, tokens: int) -> float:
        """Seconds until an answer of so many tokens is whole."""
        return self.first_token.total_seconds() + tokens * self.per_token()
