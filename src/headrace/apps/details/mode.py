"""How batches are made: by parts over the bus, or by one large call each; and the change from one to the other.

Guaranteed: no request is lost, and none is begun in the old way after the change has ended. Agents and a bus that are
dead hold up no change to single calls: batches to which nothing comes are made by their coordinators. The word is kept
by the queue of parts, which is paused, with a reason that says so, while there are to be none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.apps.details.names import FLOWS_QUEUE, INTAKE_QUEUE, MODE_FEED, SUBTASKS_QUEUE
from headrace.apps.details.silence import STILL_SECONDS, Stillness
from headrace.model.errors import ConflictError, InvalidInputError
from headrace.model.job import JobState

if TYPE_CHECKING:
    from headrace import App

NORMAL, SINGLE = "normal", "single-call"
MODES = (NORMAL, SINGLE)
#: Why the queue of parts is paused while there are none.
REASON = "details are made in single-call mode: headrace details mode normal"
_CHANGING = "the mode of details changes to {mode}; the same command again finishes a change that was cut off"
_OTHER = (
    "the mode of details is being changed already (to {mode}): wait for its end; where whoever changed it is gone, the "
    f"same command again finishes it, and `headrace queue resume {INTAKE_QUEUE}` gives it up"
)
_BOUND = f"; a batch to which nothing comes for {STILL_SECONDS:.0f} s is made by its coordinator, without agents"
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
    ConflictError while it is changed to another mode, StoreUnavailableError.
    """
    changing = await _changing(app)
    if changing is None and await read_mode(app) == check_mode(mode):
        return mode
    if changing not in (None, check_mode(mode)):
        raise ConflictError(_OTHER.format(mode=changing))
    await app.pause(INTAKE_QUEUE, reason=_CHANGING.format(mode=mode), force=True)
    await _until_empty(app, mode, progress or (lambda _: None))
    if mode == SINGLE:
        await app.pause(SUBTASKS_QUEUE, reason=REASON, force=True)
        # A request whose claim was not to be seen may have begun meanwhile; what begins now reads the new mode.
        await _until_empty(app, mode, progress or (lambda _: None))
    else:
        await app.resume(SUBTASKS_QUEUE)
    await _note(app, mode)
    await app.resume(INTAKE_QUEUE)
    return mode


async def becomes_single(app: App) -> bool:
    """Whether batches are made by one large call each, or are to be."""
    return await read_mode(app) == SINGLE or await _changing(app) == SINGLE


async def _changing(app: App) -> str | None:
    """Return the mode that it is being changed to, or was before the change was cut off: the intake's pause says so."""
    state = await app.queue_state(INTAKE_QUEUE)
    reason = state.paused_reason if state.paused else None
    return next((mode for mode in MODES if reason == _CHANGING.format(mode=mode)), None)


async def _note(app: App, mode: str) -> None:
    """Note a change in the feed of changes, unless it was noted before it was cut off."""
    feed = app.feed(MODE_FEED)
    end = await feed.end()
    last = await feed.read(end - 1, 1) if end else []
    if not last or last[0].data != {"mode": mode}:
        await feed.append("mode", {"mode": mode})


async def _until_empty(app: App, mode: str, progress: Callable[[str], None]) -> None:
    said, stillness = "", Stillness(app)
    while True:
        if await _changing(app) != mode:
            raise ConflictError(_OTHER.format(mode=await _changing(app) or "none: the intake was resumed"))
        left = await _left(app)
        if not any(left.values()):
            return
        words = ", ".join(f"{count} in {queue}" for queue, count in left.items() if count)
        if words != said:
            progress(f"waiting for what was begun: {words}{_BOUND if mode == SINGLE else ''}")
            said = words
        if mode == SINGLE:
            await stillness.give_up()
        await asyncio.sleep(PAUSE_SECONDS)


async def _left(app: App) -> dict[str, int]:
    """Return how many jobs were begun and have not ended, by queue: requests that wait in the intake were not."""
    inspect, left = app.runtime.stores.inspect, {}
    for queue in (INTAKE_QUEUE, FLOWS_QUEUE, SUBTASKS_QUEUE):
        counts = await inspect.live_jobs(queue)
        begun = [JobState.RUNNING] if queue == INTAKE_QUEUE else list(counts)
        left[queue] = sum(counts.get(state, 0) for state in begun)
    return left
