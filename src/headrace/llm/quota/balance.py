"""Units of a pool that this process has leased and not used."""

from __future__ import annotations

from collections.abc import Mapping

#: Sums of floats that should be nothing are not quite.
_NOTHING = 1e-6


class Balance:
    """Units by dimension; below zero where calls used more than was reserved for them."""

    def __init__(self) -> None:
        self._units: dict[str, float] = {}

    def __getitem__(self, key: str) -> float:
        return self._units.get(key, 0.0)

    def covers(self, needs: Mapping[str, float]) -> bool:
        """Say whether all of it is there."""
        return all(units <= self[key] + _NOTHING for key, units in needs.items())

    def add(self, units: Mapping[str, float], times: float = 1.0) -> None:
        """Add units, or take them (`times=-1`)."""
        for key, amount in units.items():
            self._units[key] = self[key] + times * amount

    @property
    def leased(self) -> dict[str, float]:
        """What is there and not used."""
        return {key: units for key, units in self._units.items() if units > _NOTHING}

    def drain(self) -> dict[str, float]:
        """Take everything out, debts too, and return it."""
        everything = {key: units for key, units in self._units.items() if abs(units) > _NOTHING}
        self._units.clear()
        return everything

    def cap(self, most: Mapping[str, float]) -> dict[str, float]:
        """Take out what is above `most` of some dimensions, and return it."""
        over = {key: self[key] - units for key, units in most.items() if self[key] > units + _NOTHING}
        self.add(over, -1)
        return over
