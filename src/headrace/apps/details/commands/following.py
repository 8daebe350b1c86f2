"""Following a batch to its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

from headrace import HeadraceError
from headrace.apps.details.commands.desks import Desk
from headrace.apps.details.commands.showing import Display
from headrace.apps.details.names import ENDED

#: After so long without an entry it is asked what the batch waits for: at first, and later.
FIRST_SILENCE, SILENCE = 2.0, 5.0


async def follow(desk: Desk, batch_id: str, display: Display, *, since: float | None = None) -> Mapping[str, Any]:
    """Show a batch until it has ended and return how it ended. `since`: `time.monotonic()` when it was asked for."""
    async with _attended(desk, batch_id, display) as came, aclosing(desk.follow(batch_id)) as entries:
        async for told in entries:
            came.set()
            display.entry(told, None if since is None else time.monotonic() - since)
            if told.type == ENDED:
                return told.data
    raise HeadraceError(f"the feed of batch {batch_id} ended before the batch did; watch it again")


@asynccontextmanager
async def _attended(desk: Desk, batch_id: str, display: Display) -> AsyncIterator[asyncio.Event]:
    """Show what a batch waits for while nothing comes; the event is set when something did."""
    came = asyncio.Event()
    task = asyncio.create_task(_attend(desk, batch_id, display, came), name="headrace-details-attention")
    try:
        yield came
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _attend(desk: Desk, batch_id: str, display: Display, came: asyncio.Event) -> None:
    silence, said = FIRST_SILENCE, ""
    while True:
        came.clear()
        try:
            async with asyncio.timeout(silence):
                await came.wait()
        except TimeoutError:
            said = await _ask(desk, batch_id, display, said)
        silence = SILENCE


async def _ask(desk: Desk, batch_id: str, display: Display, said: str) -> str:
    """Show what a batch waits for, unless that was said last, and return it."""
    # Whoever follows the batch says it when the service is not there.
    with suppress(HeadraceError):
        text = str((await desk.view(batch_id)).get("attention") or "")
        if text and text != said:
            display.attention(text)
        return text
    return said


def exit_code(ending: Mapping[str, Any]) -> int:
    """Return 0 for a batch that has all its items, else 1.

    >>> exit_code({"status": "completed"}), exit_code({"status": "partial"})
    (0, 1)
    """
    return 0 if ending.get("status") == "completed" else 1
