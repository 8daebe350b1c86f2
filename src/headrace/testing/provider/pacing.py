"""Keeping time against instants, not against sums of pauses: who comes late once is not late for ever after."""

from __future__ import annotations

import asyncio
import math

from headrace.testing.provider.latency import Latency

#: Streams wake on a common grid, so that many of them share one turn of the event loop.
_GRID_SECONDS = 0.04


class Pace:
    """The timetable of one answer, from now."""

    def __init__(self, latency: Latency) -> None:
        self._loop = asyncio.get_running_loop()
        self._first_at = self._loop.time() + latency.first_token.total_seconds()
        self._per_token, self._step = latency.per_token(), latency.tokens_per_event

    async def first_token(self) -> None:
        """Wait for the first token's instant."""
        await self._until(self._first_at)

    async def end(self, tokens: int) -> None:
        """Wait until an answer of so many tokens is whole."""
        await self._until(self._first_at + tokens * self._per_token)

    async def more(self, sent: int, tokens: int) -> int:
        """Wait until the next event's tokens are due; how many are due by now in whole events, of `tokens` in all."""
        if not self._per_token:
            return tokens
        following = min(tokens, sent + self._step)
        due_at = self._first_at + (following - 1) * self._per_token
        if due_at > self._loop.time():
            await self._until(math.ceil(due_at / _GRID_SECONDS) * _GRID_SECONDS)
        due = int((self._loop.time() - self._first_at) / self._per_token) + 1
        return tokens if due >= tokens else max(following, due - due % self._step)

    async def _until(self, at: float) -> None:
        left = at - self._loop.time()
        if left <= 0:
            await asyncio.sleep(0)  # others have their turn also where nothing is to be waited for
        while left > 0:
            await asyncio.sleep(left)
            left = at - self._loop.time()
