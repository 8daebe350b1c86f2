"""Price lists: the one of the `genai-prices` package, and prices of your own before it. No network."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING

from headrace.model.money import to_nano
from headrace.model.prices import Cost, Price
from headrace.model.usage import Usage
from headrace.ports.prices import Prices

if TYPE_CHECKING:
    from genai_prices.types import PriceCalculation

_PACKAGE = "genai-prices"
_LOCAL = "local"


class GenaiPrices:
    """The prices that come with the installed `genai-prices`; they are as new as the package.

    The list is read on first use (0.2 s; `load` does it before). What it does not price in tokens is unknown, also
    where the list calls it free: a price of 0 is one that somebody wrote down, see `PriceTable`.

    `base_url`: of the endpoint that calls itself `openai`; where it is another company's, its prices count.

    >>> usage = Usage(input_tokens=1_000_000, calls=1)
    >>> GenaiPrices().cost("openai", "gpt-4o-mini", usage).nano, GenaiPrices().cost("openai", "no-such-model", usage)
    (150000000, None)
    """

    def __init__(self, *, base_url: str | None = None) -> None:
        self._base_url = base_url

    def load(self) -> None:
        """Read the list now; for a thread, so that no call waits for it."""
        _list_version()
        self.cost("openai", "gpt-4o", Usage(calls=1))

    def cost(self, provider: str, model: str, usage: Usage) -> Cost | None:
        """What a usage costs today; None where the model or its price is unknown, or what was used."""
        if usage.unpriced:
            return None
        calculation = self._calculate(provider, model, usage)
        if calculation is None:
            return None
        price = calculation.model_price
        if price.input_mtok is None or (usage.output_tokens and price.output_mtok is None):
            return None
        return Cost(to_nano(calculation.total_price), f"{_PACKAGE} {_list_version()}")

    def _calculate(self, provider: str, model: str, usage: Usage) -> PriceCalculation | None:
        import genai_prices

        counts = genai_prices.Usage(
            input_tokens=usage.input_tokens,
            cache_read_tokens=usage.cached_tokens,
            output_tokens=usage.output_tokens,
        )
        try:
            if provider == "openai" and self._base_url is not None:
                return genai_prices.calc_price(counts, model, provider_api_url=self._base_url)
            return genai_prices.calc_price(counts, model, provider_id=provider)
        except (LookupError, ValueError):
            return None


class PriceTable:
    """Prices of your own by model ("gpt-4o-mini") or by provider and model ("openai/gpt-4o-mini"), then another list.

    The local model costs nothing, unless it has a price here.

    >>> from decimal import Decimal
    >>> table = PriceTable({"my-model": Price(Decimal(1), Decimal(2))}, GenaiPrices())
    >>> table.cost("openai", "my-model", Usage(input_tokens=1_000_000, calls=1))
    Cost(nano=1000000000, source='headrace.toml')
    """

    def __init__(self, overrides: Mapping[str, Price], then: Prices) -> None:
        self._overrides, self._then = dict(overrides), then

    def cost(self, provider: str, model: str, usage: Usage) -> Cost | None:
        """What a usage costs today; None where the price is unknown, or what was used."""
        if usage.unpriced:
            return None
        price = self._overrides.get(f"{provider}/{model}") or self._overrides.get(model)
        if price is not None:
            return price.cost(usage)
        return Cost(0, _LOCAL) if provider == _LOCAL else self._then.cost(provider, model, usage)


@cache
def _list_version() -> str:
    return version(_PACKAGE)
