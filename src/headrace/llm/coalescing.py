"""Group commit: what is sent at the same time goes in one statement, and nothing waits for a clock.

A lone item is sent at once; while one statement is under way the next items gather, so that statements grow with the
load by themselves. A refused statement is sent item by item, so that one refused item fails only its own sender;
a store that is away fails all of them at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Generic, TypeVar

from headrace.model.errors import HeadraceError

T = TypeVar("T")
R = TypeVar("R")

MAX_STATEMENT = 200


class Coalescer(Generic[T, R]):
    """Sends items through `send`, a function of a list that answers each of them, in order. For one event loop."""

    def __init__(self, send: Callable[[list[T]], Awaitable[Sequence[R]]]) -> None:
        self._send = send
        self._pending: list[tuple[T, asyncio.Future[R]]] = []
        self._under_way: list[tuple[T, asyncio.Future[R]]] = []
        self._runner: asyncio.Task[None] | None = None

    def put(self, item: T) -> asyncio.Future[R]:
        """Send an item soon; the future has its answer. Cancelling that takes back what is not under way yet."""
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._pending.append((item, future))
        if self._runner is None:
            self._runner = asyncio.create_task(self._run(), name="headrace-llm-commit")
        return future

    async def drain(self, longest: timedelta) -> int:
        """Wait until everything put so far is answered, then give up the rest; return how many that were."""
        if self._runner is None:
            return 0
        await asyncio.wait([self._runner], timeout=longest.total_seconds())
        late = [pair for pair in (*self._under_way, *self._pending) if not pair[1].done()]
        self._pending.clear()
        if self._runner is not None:
            self._runner.cancel()
        for _, future in late:
            future.cancel()
        return len(late)

    async def _run(self) -> None:
        try:
            while self._pending:
                part = self._pending[:MAX_STATEMENT]
                del self._pending[:MAX_STATEMENT]
                self._under_way = [pair for pair in part if not pair[1].cancelled()]
                await self._send_part(self._under_way)
        finally:
            self._runner, self._under_way = None, []

    async def _send_part(self, part: list[tuple[T, asyncio.Future[R]]]) -> None:
        if not part:
            return
        try:
            answers = await self._send([item for item, _ in part])
        except Exception as error:
            if len(part) > 1 and not (isinstance(error, HeadraceError) and error.transient):
                for pair in part:
                    await self._send_part([pair])
                return
            for _, future in part:
                _settle(future, error)
            return
        for (_, future), answer in zip(part, answers, strict=True):
            if not future.done():
                future.set_result(answer)


def _settle(future: asyncio.Future[R], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
