"""Waits of nodes: for a signal, for a time, or for whichever comes first. The moment it began is kept."""

from __future__ import annotations

import json
from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from headrace.model.job import Park
from headrace.ports.clock import Clock
from headrace.ports.signal_store import SignalStore


class KeepStep(Protocol):
    """Keeps a text once by name, across attempts, and returns the one that is kept."""

    def __call__(self, name: str, value: str) -> Awaitable[str]: ...


@dataclass(frozen=True, slots=True)
class Waited:
    """What a wait has come to: a payload, a time that is over, or, with `park`, nothing yet."""

    payload: str | None = None
    timed_out: bool = False
    park: Park | None = None


@dataclass(frozen=True, slots=True)
class Waits:
    """Looks for what a wait is for."""

    signals: SignalStore
    clock: Clock
    keep: KeepStep

    async def wait(self, name: str, key: str | None, timeout: timedelta | None) -> Waited:
        """Return what the wait called `name` has come to; the first of signal and time wins."""
        payload = None if key is None else await self.signals.read_signal(key)
        if payload is not None:
            return Waited(payload)
        if timeout is None:
            return Waited(park=Park(key))
        kept = await self.keep(f"until {name}", json.dumps((self.clock.now() + timeout).isoformat()))
        until = datetime.fromisoformat(json.loads(kept))
        left = until - self.clock.now()
        return Waited(timed_out=True) if left <= timedelta() else Waited(park=Park(key, left))
