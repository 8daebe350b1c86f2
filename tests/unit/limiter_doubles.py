"""Limiters beside a store that stop answering when a test says so."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from headrace.model.errors import StoreUnavailableError
from headrace.ports.limiter import Limiter


class Fickle:
    """A limiter that can be frozen (says nothing) or away (refuses at once), and counts what is asked of it."""

    def __init__(self, limiter: Limiter) -> None:
        self._limiter = limiter
        self.frozen = self.away = False
        self.asked: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        async def call(*arguments: Any, **options: Any) -> Any:
            self.asked[name] += 1
            if self.frozen:
                await asyncio.Event().wait()
            if self.away:
                raise StoreUnavailableError("nobody listens there")
            return await getattr(self._limiter, name)(*arguments, **options)

        return call
