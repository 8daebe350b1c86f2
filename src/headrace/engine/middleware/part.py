"""Part: a node of a run gets its arguments from the graph before its handler runs."""

from __future__ import annotations

from typing import Any

from headrace.engine.attempt import Attempt, Proceed


async def play_part(attempt: Attempt, proceed: Proceed) -> Any:
    """Run the attempt as its part in a run says; any other as it is."""
    if attempt.part is None:
        return await proceed(attempt)
    return await attempt.part.run(attempt, proceed)
