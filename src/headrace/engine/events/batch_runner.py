"""What becomes of several messages of an agent that one call of a handler takes together.

Guaranteed: the effect of a call and the notes of all its events are stored in one transaction; events that were handled
before are not in it; those of a key are in order, within a call and across calls. What cannot be handled together is
returned, to be handled alone: what is no event, what a call failed for, and what stands behind it under its key.
Not guaranteed: that a handler runs once, or again with the same others.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from headrace.engine.events.agent_runner import AgentRunner, delivery_id, outcome_of
from headrace.engine.events.agents import EventsContext, Handler
from headrace.model.envelopes import EnvelopeError, decode
from headrace.model.event import Event
from headrace.model.message_log import Partition
from headrace.ports.bus import Delivery

LOG = logging.getLogger("headrace.agent")

Lane = tuple[Partition, str]


@dataclass(frozen=True, slots=True)
class Entry:
    """A message that is to be handled."""

    delivery: Delivery
    event: Event
    handler: Handler
    message_id: str

    @property
    def lane(self) -> Lane:
        """What it is in order with."""
        return self.delivery.place, self.delivery.message.key


@dataclass(slots=True)
class Share:
    """Events of a call of one handler."""

    handler: Handler
    entries: list[Entry] = field(default_factory=list)


@dataclass(slots=True)
class BatchRunner:
    """Handles messages of one agent together."""

    #: Handles each of them alone.
    alone: AgentRunner

    async def take(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """Handle messages to their end, and return those that are to be handled alone, in their order."""
        entries, left = self._read(deliveries)
        apart: list[Entry] = []
        for share in shares_of(await self._fresh(entries)):
            behind = {entry.lane for entry in apart}
            together = [entry for entry in share.entries if entry.lane not in behind]
            apart += [entry for entry in share.entries if entry.lane in behind]
            if not await self._handle(share.handler, together):
                apart += together
        gone = {id(delivery) for delivery in left} | {id(entry.delivery) for entry in apart}
        return [delivery for delivery in deliveries if id(delivery) in gone]

    def _read(self, deliveries: Sequence[Delivery]) -> tuple[list[Entry], list[Delivery]]:
        """Return what is for this agent, and what is to be judged alone; the rest is passed over."""
        entries: list[Entry] = []
        alone: list[Delivery] = []
        agent = self.alone.agent
        for delivery in deliveries:
            if self.alone.is_others_dead_letter(delivery.message.topic):
                alone.append(delivery)
                continue
            try:
                event = decode(delivery.message)
                handler = None if event is None else agent.handler_for(event)
            except EnvelopeError:
                alone.append(delivery)
            except Exception:  # of the filter; told when it is judged alone
                alone.append(delivery)
            else:
                if event is None or handler is None:
                    self._count("ignore")
                else:
                    entries.append(Entry(delivery, event, handler, delivery_id(delivery, event, agent.id)))
        return entries, alone

    async def _fresh(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return those that were not handled before, each once: what comes twice in one call has one effect."""
        ids = list(dict.fromkeys(entry.message_id for entry in entries))
        if not ids:
            return []
        inbox, agent = self.alone.inbox, self.alone.agent.id
        seen = set(await self.alone.until_answered(lambda: inbox.handled_among(agent, ids)))
        fresh: list[Entry] = []
        for entry in entries:
            if entry.message_id not in seen:
                seen.add(entry.message_id)
                fresh.append(entry)
        self._count("repeat", len(entries) - len(fresh))
        return fresh

    async def _handle(self, handler: Handler, entries: list[Entry]) -> bool:
        """Call the handler and store its effect; False: it failed, and nothing is stored."""
        outages = 0
        while entries:
            repeated = await outcome_of(self._run(handler, entries))
            if isinstance(repeated, frozenset):
                self._count("repeat", len(repeated))
                if not repeated:
                    self._count("handle", len(entries))
                    return True
                entries = [entry for entry in entries if entry.message_id not in repeated]
            elif await self.alone.pause_for(repeated, outages + 1):
                outages += 1
            else:
                LOG.warning(
                    "agent %s: a call for %d events failed, so each is handled alone: %s",
                    self.alone.agent.id, len(entries), repeated,
                )  # fmt: skip
                return False
        return True

    async def _run(self, handler: Handler, entries: Sequence[Entry]) -> frozenset[str]:
        """Call the handler once; return which of the events others have handled meanwhile: then nothing is stored."""
        self._count("calls")
        events = [entry.event for entry in entries]
        context = self.alone.context(events[0], 1)
        await self.alone.call(handler, events, EventsContext(tuple(events), context))
        inbox, agent, ids = self.alone.inbox, self.alone.agent.id, [entry.message_id for entry in entries]
        return await self.alone.until_answered(lambda: inbox.accept_batch(agent, ids, context.effect))

    def _count(self, what: str, times: int = 1) -> None:
        if times:
            self.alone.telemetry.count(f"headrace.events.{what}", times)


def shares_of(entries: Sequence[Entry]) -> list[Share]:
    """Return the calls that entries come to, one after another: as few as keep the order of each key."""
    shares: list[Share] = []
    least: dict[Lane, int] = {}
    for entry in entries:
        start = least.get(entry.lane, 0)
        places = range(start, len(shares))
        place = next((number for number in places if shares[number].handler is entry.handler), len(shares))
        if place == len(shares):
            shares.append(Share(entry.handler))
        shares[place].entries.append(entry)
        least[entry.lane] = place
    return shares
