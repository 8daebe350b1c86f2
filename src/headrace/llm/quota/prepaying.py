"""Calls that need more than the pool's bucket ever holds: paid for in advance, out of that bucket, and waited for."""

from __future__ import annotations

from headrace.llm.quota.central import Central
from headrace.llm.quota.state import Prepaid, State

_NOTHING = 1e-6


class Prepaying:
    """Pays for the head of a line. All verbs that ask the limiter raise StoreUnavailableError."""

    def __init__(self, state: State, central: Central) -> None:
        self._state, self._central = state, central

    @property
    def is_due(self) -> bool:
        """Whether there is something to pay for, or to take."""
        return self._state.prepaid is not None or bool(self._lack())

    def _lack(self) -> dict[str, float]:
        """Return what lacks for the next call where that is more than the limiter ever has, else nothing."""
        state, head = self._state, self._state.line.head
        rates = state.tempo.rates(state.loop.time())
        lacks = {key: units - state.balance[key] for key, units in head.units.items()} if head is not None else {}
        if all(units <= rates[key].burst for key, units in lacks.items()):
            return {}
        return {key: units for key, units in lacks.items() if units > _NOTHING}

    async def pay(self) -> bool:
        """Pay for the head of the line; False: the limiter does not know the pool."""
        state, flows = self._state, self._state.tempo.flows()
        units, payer = self._lack(), state.line.head
        await self._central.give_back({key: -amount for key, amount in units.items()})
        levels = await self._central.levels(units)
        if payer is None or payer is not state.line.head or levels.keys() != units.keys():
            await self._central.give_back({key: units[key] for key in levels})
            return levels.keys() == units.keys()
        wait = max((-levels[key].units / flows[key] for key in units if key in flows), default=0.0)
        state.prepaid = Prepaid(payer, state.loop.time() + max(wait, 0.0), units)
        return True

    def take(self) -> None:
        """Let the head have what is earned by now."""
        self._state.balance.add(self.drop())
        self._state.serve()

    def drop(self) -> dict[str, float]:
        """Return what was paid, which is nobody's any more."""
        prepaid, self._state.prepaid = self._state.prepaid, None
        return dict(prepaid.units) if prepaid is not None else {}
