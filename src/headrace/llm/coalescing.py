"""Group commit: what is sent at the same time goes in one statement, and nothing waits for a clock.

A lone item is sent at once; while one statement is under way the next items gather, so that statements grow with the
load by themselves. A statement that fails is sent item by item, so that one refused item fails only its own sender.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

MAX_STATEMENT = 200


class Coalescer(Generic[T, R]):
    """Sends items through `send`, a function of a list that answers each of them, in order. For one event loop."""

    def __init__(self, send: Callable[[list[T]], Awaitable[Sequence[R]]]) -> None:
        self._send = send
        self._pending: list[tuple[T, asyncio.Future[R]]] = []
        self._runner: asyncio.Task[None] | None = None

    def put(self, item: T) -> asyncio.Future[R]:
        """Send an item soon; the future has its answer. Cancelling that takes back what is not under way yet."""
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._pending.append((item, future))
        if self._runner is None:
            self._runner = asyncio.create_task(self._run(), name="headrace-llm-commit")
        return future

    async def drain(self) -> None:
        """Wait until everything put so far is answered."""
        if self._runner is not None:
            await asyncio.wait([self._runner])

    async def _run(self) -> None:
        try:
            while self._pending:
                part = self._pending[:MAX_STATEMENT]
                del self._pending[:MAX_STATEMENT]
                await self._send_part([pair for pair in part if not pair[1].cancelled()])
        finally:
            self._runner = None

    async def _send_part(self, part: list[tuple[T, asyncio.Future[R]]]) -> None:
        if not part:
            return
        try:
            answers = await self._send([item for item, _ in part])
        except Exception as error:
            if len(part) == 1:
                _settle(part[0][1], error)
                return
            for pair in part:
                await self._send_part([pair])
            return
        for (_, future), answer in zip(part, answers, strict=True):
            if not future.done():
                future.set_result(answer)


def _settle(future: asyncio.Future[R], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
