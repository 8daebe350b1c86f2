"""Following a batch to its end."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

from headrace import HeadraceError
from headrace.apps.details.commands.desks import Desk
from headrace.apps.details.commands.showing import Display
from headrace.apps.details.names import ENDED


async def follow(desk: Desk, batch_id: str, display: Display, *, since: float | None = None) -> Mapping[str, Any]:
    """Show a batch until it has ended and return how it ended. `since`: `time.monotonic()` when it was asked for."""
    async with aclosing(desk.follow(batch_id)) as entries:
        async for told in entries:
            display.entry(told, None if since is None else time.monotonic() - since)
            if told.type == ENDED:
                return told.data
    raise HeadraceError(f"the feed of batch {batch_id} ended before the batch did; watch it again")


def exit_code(ending: Mapping[str, Any]) -> int:
    """Return 0 for a batch that has all its items, else 1.

    >>> exit_code({"status": "completed"}), exit_code({"status": "partial"})
    (0, 1)
    """
    return 0 if ending.get("status") == "completed" else 1
