"""What a model costs: prices per million tokens, and the cost of a usage."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from headrace.model.errors import InvalidInputError
from headrace.model.money import NANO
from headrace.model.usage import Usage

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Cost:
    """Money, and by which table: recorded with each call, since prices change."""

    #: nanodollars
    nano: int
    #: the table and its version or date, such as "genai-prices 0.2.3" or "headrace.toml"
    source: str


@dataclass(frozen=True, slots=True)
class Price:
    """Prices of a model in US dollars per million tokens; `cached_input` None: as `input`.

    >>> Price(Decimal("0.15"), Decimal("0.60")).cost(Usage(input_tokens=1_000, output_tokens=100, calls=1)).nano
    210000
    """

    input: Decimal
    output: Decimal
    cached_input: Decimal | None = None
    source: str = "headrace.toml"

    def __post_init__(self) -> None:
        for name in ("input", "output", "cached_input"):
            price = getattr(self, name)
            if price is not None and not (price.is_finite() and price >= 0):
                raise InvalidInputError(f"price {name}", "must be dollars per million tokens, 0 or more", str(price))

    def cost(self, usage: Usage) -> Cost:
        """Return what a usage costs, rounded half up to a nanodollar."""
        cached = self.input if self.cached_input is None else self.cached_input
        fresh = max(0, usage.input_tokens - usage.cached_tokens)
        dollars = (fresh * self.input + usage.cached_tokens * cached + usage.output_tokens * self.output) / _MILLION
        return Cost(int((dollars * NANO).quantize(Decimal(1), rounding=ROUND_HALF_UP)), self.source)
