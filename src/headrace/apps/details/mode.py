"""How batches are made: by parts over the bus, or by one large call each; and the change from one to the other.

Guaranteed: no request is lost, and none is begun in the old way after the change has ended. The word is kept by the
queue of parts, which is paused, with a reason that says so, while there are to be none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.apps.details.names import FLOWS_QUEUE, INTAKE_QUEUE, MODE_FEED, SUBTASKS_QUEUE
from headrace.model.errors import InvalidInputError
from headrace.model.job import JobState

if TYPE_CHECKING:
    from headrace import App

NORMAL, SINGLE = "normal", "single-call"
MODES = (NORMAL, SINGLE)
#: Why the queue of parts is paused while there are none.
REASON = "details are made in single-call mode: headrace details mode normal"
_CHANGING = "the mode of details changes to {mode}; the same command again finishes a change that was cut off"
PAUSE_SECONDS = 0.1


def check_mode(mode: object) -> str:
    """Return `mode` if it is one. Raises InvalidInputError."""
    if mode not in MODES:
        raise InvalidInputError("mode", f"must be one of {', '.join(MODES)}", mode)
    return str(mode)


async def read_mode(app: App) -> str:
    """Return how batches that begin now are made."""
    state = await app.queue_state(SUBTASKS_QUEUE)
    return SINGLE if state.paused and state.paused_reason == REASON else NORMAL


async def set_mode(app: App, mode: str, progress: Callable[[str], None] | None = None) -> str:
    """Let nothing begin until all that was begun has ended, change the mode, and let requests begin again.

    Requests are accepted all the time. Cut off anywhere, it is finished by calling it again. Raises InvalidInputError,
    StoreUnavailableError.
    """
    if await read_mode(app) == check_mode(mode):
        await _resume_after_change(app, mode)
        return mode
    await app.pause(INTAKE_QUEUE, reason=_CHANGING.format(mode=mode), force=True)
    await _until_empty(app, progress or (lambda _: None))
    if mode == SINGLE:
        await app.pause(SUBTASKS_QUEUE, reason=REASON, force=True)
    else:
        await app.resume(SUBTASKS_QUEUE)
    await app.feed(MODE_FEED).append("mode", {"mode": mode})
    await app.resume(INTAKE_QUEUE)
    return mode


async def _resume_after_change(app: App, mode: str) -> None:
    """Let requests begin where a change to this mode was cut off just before its end."""
    state = await app.queue_state(INTAKE_QUEUE)
    if state.paused and (state.paused_reason or "").startswith("the mode of details changes"):
        await app.resume(INTAKE_QUEUE)


async def _until_empty(app: App, progress: Callable[[str], None]) -> None:
    said = ""
    while True:
        left = await _left(app)
        if not any(left.values()):
            return
        words = ", ".join(f"{count} in {queue}" for queue, count in left.items() if count)
        if words != said:
            progress(f"waiting for what was begun: {words}")
            said = words
        await asyncio.sleep(PAUSE_SECONDS)


async def _left(app: App) -> dict[str, int]:
    """Return how many jobs were begun and have not ended, by queue: requests that wait in the intake were not."""
    inspect, left = app.runtime.stores.inspect, {}
    for queue in (INTAKE_QUEUE, FLOWS_QUEUE, SUBTASKS_QUEUE):
        counts = await inspect.live_jobs(queue)
        begun = [JobState.RUNNING] if queue == INTAKE_QUEUE else list(counts)
        left[queue] = sum(counts.get(state, 0) for state in begun)
    return left
