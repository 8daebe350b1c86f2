"""The clock port: two questions, so that tests and the simulation can answer them."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Time for local decisions. What other processes rely on is decided by the store's clock alone."""

    def now(self) -> datetime:
        """Return the wall clock, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go back and that count a suspended machine."""
        ...
