"""What tests of resume handles do again and again: register, note results and dead letters, look."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from headrace.model.resume_handle import HandleState, HandleView, NewHandle, NotedEvent, signal_key
from headrace.ports.handle_store import HandleStore
from tests.conformance.events import Events, event
from tests.conformance.scenario import ALL, MINUTE

RESULT, REQUEST = "Genesis.Batch.Created", "Genesis.Batch.Requested"


class Handles:
    """A handle store, and short words for what is done with it."""

    def __init__(self, events: Events) -> None:
        self.on, self.events = events.on, events

    @property
    def store(self) -> HandleStore:
        """The handle store of the backend."""
        return self.events.handles

    def new(self, count: int = 1, *, key: str = "c", timeout: timedelta = MINUTE, **facts: Any) -> NewHandle:
        """Return a handle for results of a correlation id."""
        facts = {"expect_types": (RESULT,), "request_types": (REQUEST,), **facts}
        return NewHandle(key, expect_count=count, timeout=timeout, **facts)

    async def register(self, count: int = 1, **facts: Any) -> HandleView:
        """Register such a handle."""
        return await self.store.register_handle(self.new(count, **facts))

    async def ended(self, key: str, state: HandleState, **facts: Any) -> HandleView:
        """Register a handle, end it in a state, and return it."""
        await self.register(key=key, **facts)
        if state is HandleState.RESOLVED:
            await self.note(result(correlation_id=key))
        elif state is HandleState.CANCELLED:
            await self.store.cancel_handle(key)
        elif state is HandleState.EXPIRED:
            self.on.clock.advance(MINUTE)
            await self.store.expire_handles(limit=ALL)
        return await self.get(key)

    async def note(self, *noted: NotedEvent) -> list[HandleState | None]:
        """Note events and return what each answer says of the handle."""
        views = [await self.store.note_event(one) for one in noted]
        return [None if view is None else view.state for view in views]

    async def get(self, key: str = "c") -> HandleView:
        """Return a handle that must exist."""
        view = await self.store.get_handle(key)
        assert view is not None
        return view

    async def state(self, key: str = "c") -> HandleState:
        """Return the state of a handle."""
        return (await self.get(key)).state

    async def signal(self, key: str = "c") -> Any:
        """Return what the end of a handle sent; None: nothing."""
        text = await self.on.stores.signals.read_signal(signal_key(key))
        return None if text is None else json.loads(text)

    async def kept(self, key: str = "c") -> list[Any]:
        """Return the payloads of what is kept for a handle."""
        return [noted.event.payload for noted in await self.store.noted_events(key)]


def result(payload: Any = None, *, cause: NotedEvent | None = None, **facts: Any) -> NotedEvent:
    """Return a result, caused by a request or by nothing."""
    facts = {"type": RESULT, "correlation_id": "c", "causation_id": cause and cause.event.id, **facts}
    return NotedEvent(event(payload, **facts))


def dead(payload: Any = None, *, agent: str = "writer", **facts: Any) -> NotedEvent:
    """Return a request that became a dead letter."""
    facts = {"type": REQUEST, "correlation_id": "c", **facts}
    return NotedEvent(event(payload, **facts), dead=True, agent=agent, error="ValueError: no")
