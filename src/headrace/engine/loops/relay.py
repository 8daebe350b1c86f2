"""The relay: events leave the outbox for the bus, in order per key, by one process at a time.

Guaranteed: a row leaves the outbox only once the bus has said that its message is durable, so that no event is lost,
whoever dies; the rows of a topic and key are sent in their order; one that the bus will never take is parked, and what
comes after it waits behind it until an operator releases or drops it; while the bus is away nothing is parked. Two
relays at once, as when leadership passes on, do no harm: a message may come twice, and first comings are in order.
Not guaranteed: that a message is sent once. And where a bus cannot keep back what it was given in the same call
(`BEHIND`), messages of the key of a refused one that were sent along with it have overtaken it: those are published,
and the first of the next batch is the first that waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from headrace.engine.events.parked_lanes import Lane, ParkedLanes, lane_of
from headrace.engine.loops.leadership import Leadership
from headrace.engine.loops.loop import LOG, Loop
from headrace.engine.outage import Outage
from headrace.engine.telemetry import Telemetry
from headrace.model.envelopes import encode
from headrace.model.errors import BusUnavailableError, InvalidInputError, StoreUnavailableError
from headrace.model.event import Message, OutboxRow
from headrace.model.session import LeaderTerm
from headrace.ports.bus import BEHIND, Bus
from headrace.ports.outbox import Outbox

PUBLISHED, PARKED, WAITING = "headrace.events.publish", "headrace.events.park", "headrace.events.waiting"
#: The first pause while the bus or the store is away, and the longest, seconds.
PAUSES = (0.2, 5.0)
#: How long a batch that is being sent is waited for when the relay stops, seconds.
STOP_SECONDS = 2.0
#: How often is counted what waits, seconds: it takes a look at every row.
COUNT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class RelayOptions:
    """How the relay works; see `[events]` in the settings."""

    #: Rows that are sent at once.
    batch: int = 500
    #: How events are written: "headrace" or "cloudevents".
    form: str = "headrace"
    source: str = "/headrace"
    interval: timedelta = timedelta(milliseconds=500)


@dataclass(slots=True)
class _Sorted:
    """What became of a batch, by positions."""

    published: list[int] = field(default_factory=list)
    refused: list[tuple[int, str]] = field(default_factory=list)
    #: Topics and keys of the refused ones.
    stopped: set[Lane] = field(default_factory=set)
    behind: list[int] = field(default_factory=list)

    def refuse(self, row: OutboxRow, reason: str) -> None:
        """Note that the bus will never take a row."""
        self.refused.append((row.position, reason))
        self.stopped.add(lane_of(row))


class Relay(Loop):
    """Sends one batch per step, if this process leads, and comes back at once while batches are full."""

    name = "relay"

    def __init__(
        self, outbox: Outbox, bus: Bus, leadership: Leadership, telemetry: Telemetry, options: RelayOptions
    ) -> None:
        """`leadership` is that of Role.RELAY."""
        super().__init__(options.interval)
        self._outbox, self._bus, self._leadership = outbox, bus, leadership
        self._telemetry, self._options = telemetry, options
        self._bus_outage = Outage(LOG, "events wait in the outbox, the bus does not take them")
        self._parked = ParkedLanes(outbox)
        self._pause_seconds = PAUSES[0]
        self._counted_at: float | None = None
        self._sending = asyncio.Lock()

    async def stop(self) -> None:
        """End, if possible not between sending a batch and taking it out of the outbox: it would come twice."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS), self._sending:
                await super().stop()
        await super().stop()

    async def step(self) -> None:
        """Send a batch."""
        term = self._leadership.term
        if term is None:
            self._telemetry.gauge(WAITING, 0)
            return
        rows = await self._outbox.waiting_events(limit=self._options.batch)
        if rows:
            await self._relay(rows, term)
        await self._count()

    async def _relay(self, rows: Sequence[OutboxRow], term: LeaderTerm) -> None:
        free = await self._parked.hold(rows, term)
        if len(free) < len(rows) or len(rows) >= self._options.batch:
            self.wake()
        try:
            async with self._sending:
                done = await self._send(free)
                await self._mark(done.published)
        except BusUnavailableError as error:
            self._bus_outage.note(error)
            await self._wait()
            self.wake()
            return
        await self._put_by(done, term)

    async def _put_by(self, done: _Sorted, term: LeaderTerm) -> None:
        """Park what was refused, and let what stands behind it wait."""
        if not done.refused:
            return
        for lane in done.stopped:
            self._parked.add(lane)
        LOG.warning("%d events are parked, the bus will never take them: %s", len(done.refused), done.refused[0][1])
        await self._outbox.park_events(done.refused, term=term)
        self._telemetry.count(PARKED, len(done.refused))
        if done.behind:
            await self._outbox.hold_events(done.behind, term=term)

    async def _send(self, rows: Sequence[OutboxRow]) -> _Sorted:
        """Publish rows but those that cannot be written, and those behind them."""
        done, sent = _Sorted(), list[tuple[OutboxRow, Message]]()
        for row in rows:
            if lane_of(row) in done.stopped:
                done.behind.append(row.position)
                continue
            try:
                sent.append((row, self._message(row)))
            except InvalidInputError as error:
                done.refuse(row, str(error))
        answers = await self._bus.publish([message for _, message in sent]) if sent else []
        for (row, _), answer in zip(sent, answers, strict=True):
            _note(done, row, answer)
        return done

    def _message(self, row: OutboxRow) -> Message:
        outgoing = row.outgoing
        if outgoing.event is not None:
            written = encode(outgoing.event, self._options.form, self._options.source, outgoing.topic)
            return replace(written, key=outgoing.key)
        if outgoing.message is None:
            raise InvalidInputError("outbox row", "must have an event or a message", row.position)
        return outgoing.message

    async def _mark(self, positions: list[int]) -> None:
        """Take published rows out of the outbox, however long that takes: else they would be sent again."""
        while positions:
            try:
                await self._outbox.mark_published(positions)
            except StoreUnavailableError as error:
                self._outage.note(error)
                await self._wait()
            else:
                self._telemetry.count(PUBLISHED, len(positions))
                self._pause_seconds = PAUSES[0]
                return

    async def _wait(self) -> None:
        await asyncio.sleep(self._pause_seconds * random.uniform(0.5, 1.0))  # noqa: S311 - not for security
        self._pause_seconds = min(2 * self._pause_seconds, PAUSES[1])

    async def _count(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._counted_at is None or now - self._counted_at >= COUNT_SECONDS:
            self._counted_at = now
            self._telemetry.gauge(WAITING, (await self._outbox.outbox_stats()).waiting)


def _note(done: _Sorted, row: OutboxRow, answer: str | None) -> None:
    if answer is None:
        done.published.append(row.position)
    elif answer == BEHIND:
        done.behind.append(row.position)
    else:
        done.refuse(row, answer)
