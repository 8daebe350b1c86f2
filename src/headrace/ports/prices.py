"""The price list port."""

from __future__ import annotations

from typing import Protocol

from headrace.model.prices import Cost
from headrace.model.usage import Usage


class Prices(Protocol):
    """What models cost. Loads nothing over a network."""

    def cost(self, provider: str, model: str, usage: Usage) -> Cost | None:
        """Return what a usage costs today; None where the price of the model is not known."""
        ...
