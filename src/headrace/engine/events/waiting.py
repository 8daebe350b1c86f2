"""The wait of a task for the end of its resume handle: the job leaves its slot, and is entered again from the top.

Guaranteed: whatever ends the handle wakes the job, also between the look at it and the moment the job is parked; should
nobody end it in time, the job looks again by itself. What it returns is what ended the handle, each time it is asked.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headrace.engine.retrying import with_retries
from headrace.model.errors import HandleCancelledError, HandleExpiredError
from headrace.model.event import Event
from headrace.model.parking import ParkRequested
from headrace.model.resume_handle import HandleState, HandleView, NewHandle, signal_key
from headrace.ports.clock import Clock
from headrace.ports.handle_store import HandleStore
from headrace.ports.notifier import Notifier
from headrace.ports.signal_store import SignalStore

#: Topic of hints that a handle waits.
HANDLES = "handles"
#: A waiting job looks again by itself this long after its handle's time.
MARGIN = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class DeadRequest:
    """A request that became a dead letter, so that what it would have caused never comes."""

    event: Event
    #: Canonical id of the agent that gave up.
    agent: str
    #: Why.
    error: str


@dataclass(frozen=True, slots=True)
class Resumed:
    """What a wait for events came to."""

    #: The events, as they came.
    events: tuple[Event, ...] = ()
    #: Requests that became dead letters; each counts as one event.
    dead: tuple[DeadRequest, ...] = ()
    #: What came with a token, where one ended the wait; then there may be fewer events than were expected.
    payload: Any = None
    #: Whether a token ended the wait.
    by_token: bool = False


@dataclass(frozen=True, slots=True)
class HandleWaits:
    """Waits for handles, in the place of the job that runs."""

    handles: HandleStore
    signals: SignalStore
    clock: Clock
    #: Told of handles that wait: the callback service begins with the first there is.
    notifier: Notifier

    async def wait(self, handle: NewHandle) -> Resumed:
        """Return what a handle, which is made if need be, has come to, or raise ParkRequested.

        Raises HandleExpiredError, HandleCancelledError, ConflictError for a handle of other facts.
        """
        key: str | None = signal_key(handle.correlation_id)
        view = await self._register(handle)
        if not view.state.final and await self.signals.read_signal(signal_key(handle.correlation_id)) is not None:
            # It ended a moment ago; or the signal is that of an earlier handle, and wakes nobody any more.
            view, key = await self._register(handle), None
        if view.state.final:
            return await outcome(self.handles, view)
        self.notifier.hint(HANDLES)
        left = self._left(view)
        raise ParkRequested(left if key else min(left, MARGIN), f"events of {handle.correlation_id}", key=key)

    async def _register(self, handle: NewHandle) -> HandleView:
        return await with_retries(lambda _: self.handles.register_handle(handle))

    def _left(self, view: HandleView) -> timedelta:
        """Return how long to wait at most, however wrong this machine's clock is."""
        left = min(view.expires_at - self.clock.now(), view.expires_at - view.created_at)
        return max(left, timedelta()) + MARGIN


async def outcome(handles: HandleStore, view: HandleView) -> Resumed:
    """Return what a handle that has ended has come to. Raises HandleExpiredError, HandleCancelledError."""
    name = repr(view.correlation_id)
    if view.state is HandleState.EXPIRED:
        came = f"{view.arrived} of {view.expect_count} events had come"
        raise HandleExpiredError(f"the wait for {name} expired at {view.expires_at:%F %T} UTC: {came}")
    if view.state is HandleState.CANCELLED:
        raise HandleCancelledError(f"the wait for {name} was cancelled")
    noted = await with_retries(lambda _: handles.noted_events(view.correlation_id))
    results = tuple(one.event for one in noted if not one.dead)
    # A request that was run again after all, and has a result now, is dead no more.
    answered = {one.event.causation_id for one in noted}
    dead = [one for one in noted if one.dead and one.event.id not in answered]
    told = tuple(DeadRequest(one.event, one.agent, one.error) for one in dead)
    return Resumed(results, told, json.loads(view.payload or "null"), view.payload is not None)
