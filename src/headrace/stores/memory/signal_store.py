"""Signals in memory."""

from __future__ import annotations

from datetime import timedelta

from headrace.model.session import LeaderTerm
from headrace.ports.notifier import Notifier
from headrace.stores.memory import signalling
from headrace.stores.memory.leadership import leads
from headrace.stores.memory.retention import prune_signals
from headrace.stores.memory.state import State, atomic


class MemorySignalStore:
    """`ports.signal_store.SignalStore` over shared dicts; the port says what each verb promises."""

    def __init__(self, state: State, notifier: Notifier) -> None:
        self._state, self._notifier = state, notifier

    @atomic
    async def send_signal(self, key: str, payload: str) -> bool:
        """Store the first signal of a key and wake whoever waits for it."""
        queues = signalling.send(self._state, key, payload)
        for queue in queues or ():
            self._notifier.hint(f"queue:{queue}")
        return queues is not None

    @atomic
    async def read_signal(self, key: str) -> str | None:
        """Return the signal of a key."""
        signal = self._state.parked.signals.get(key)
        return None if signal is None else signal.payload

    @atomic
    async def prune_signals(self, *, older_than: timedelta, limit: int, term: LeaderTerm | None = None) -> int:
        """Remove old signals; nothing under a term that is over."""
        if term is not None and not leads(self._state, term):
            return 0
        return prune_signals(self._state, older_than=older_than, limit=limit)
