"""The callback service: looks for results in what the bus carries, and resolves the handles that wait for them.

Guaranteed: once `take` returns, the store has what a message means for a handle; while the store is away it waits and
tries again. Not guaranteed: that a message is noted once; the store knows events again by their ids. It owns no topic,
so it never dead-letters: what it cannot read is counted and passed over.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Iterator

from headrace.engine.outage import Outage
from headrace.engine.telemetry import Telemetry
from headrace.model.envelopes import EnvelopeError, decode
from headrace.model.envelopes.dead_letters import read_dead_letter
from headrace.model.errors import HeadraceError, StoreUnavailableError
from headrace.model.event import Message
from headrace.model.resume_handle import HandleState, HandleView, NotedEvent, expects
from headrace.ports.bus import Delivery
from headrace.ports.handle_cache import HandleCache
from headrace.ports.handle_store import HandleStore

LOG = logging.getLogger("headrace.callbacks")

#: The first pause after the store was away, and the longest, seconds.
PAUSES = (0.2, 5.0)
#: So many handles are remembered, so that what they do not expect costs no question, and each end is counted once.
REMEMBERED = 10_000

NOTED, PASSED, RESOLVED = "headrace.handles.note", "headrace.handles.pass", "headrace.handles.resolve"


class Callbacks:
    """Takes messages, in any order and any number of times. `suffix` is what names of topics of dead letters end in."""

    def __init__(self, handles: HandleStore, cache: HandleCache | None, telemetry: Telemetry, suffix: str) -> None:
        self._handles, self._cache, self._telemetry, self._suffix = handles, cache, telemetry, suffix
        self._known: OrderedDict[str, HandleView] = OrderedDict()
        self._outage = Outage(LOG, "cannot note an event for a resume handle")

    async def take(self, delivery: Delivery) -> None:
        """Note what a message means for a handle; never raises but when it is cancelled."""
        noted = self._read(delivery)
        if noted is None or not await self._concerns(noted):
            self._telemetry.count(PASSED)
            return
        try:
            view = await self._note(noted)
        except Exception as error:
            # One that no store takes must not stop all behind it.
            defect = not isinstance(error, HeadraceError)
            LOG.warning("passed over event %s of %s: %s", noted.event.id, delivery.place, error, exc_info=defect)
            self._telemetry.count(PASSED)
            return
        self._telemetry.count(NOTED)
        if view is not None:
            self._remember(view)
            if self._cache is not None:
                await self._cache.put(view)

    def _read(self, delivery: Delivery) -> NotedEvent | None:
        """Return the event that a message carries, if it could be one that a handle waits for."""
        try:
            noted = self._decoded(delivery.message)
        except EnvelopeError as error:
            LOG.debug("passed over the message at %s, offset %d: %s", delivery.place, delivery.offset, error)
            return None
        return None if noted is None or noted.event.correlation_id is None else noted

    def _decoded(self, message: Message) -> NotedEvent | None:
        if message.topic.endswith(self._suffix):
            return read_dead_letter(message)
        event = decode(message)
        return None if event is None else NotedEvent(event)

    async def _concerns(self, noted: NotedEvent) -> bool:
        """Whether the store has to be told, as far as is known here: what is expected, and an end, never change."""
        correlation_id = noted.event.correlation_id or ""
        known = self._known.get(correlation_id)
        if known is None and self._cache is not None:
            known = await self._cache.get(correlation_id)
        return known is None or (not known.state.final and expects(known, noted))

    async def _note(self, noted: NotedEvent) -> HandleView | None:
        for pause in _pauses():
            try:
                return await self._handles.note_event(noted)
            except StoreUnavailableError as error:
                self._outage.note(error)
            await asyncio.sleep(pause)
        raise AssertionError("pauses have no end")

    def _remember(self, view: HandleView) -> None:
        before = self._known.get(view.correlation_id)
        if view.state is HandleState.RESOLVED and (before is None or not before.state.final):
            self._telemetry.count(RESOLVED)
        self._known[view.correlation_id] = view
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)


def _pauses() -> Iterator[float]:
    pause, longest = PAUSES
    while True:
        yield pause
        pause = min(2 * pause, longest)
