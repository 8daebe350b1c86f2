"""The relay: events leave the outbox for the bus, in order per key, by one process at a time.

Guaranteed: a row leaves the outbox only once the bus has said that its message is durable, so that no event is lost,
whoever dies; the rows of a topic and key are sent in their order; one that the bus will never take is parked, and what
comes after it waits behind it until an operator releases or drops it; while the bus is away nothing is parked. A topic
that takes nothing for now (`LATER`) is left out for a pause, and no other waits for it. Nothing is sent under a term
that the store calls over. Two relays at once, where one froze after it had asked, do no harm: a message may come twice,
and first comings are in order, but that one may send what follows an event that was parked in its sleep.
Not guaranteed: that a message is sent once. And where a bus cannot keep back what it was given in the same call
(`BEHIND`), messages of the key of a refused one that were sent along with it have overtaken it: those are published,
and the first of the next batch is the first that waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from headrace.engine.events.later_topics import PAUSES, LaterTopics
from headrace.engine.events.parked_lanes import Lane, ParkedLanes, lane_of
from headrace.engine.events.sorted_batch import SortedBatch
from headrace.engine.loops.leadership import Leadership
from headrace.engine.loops.loop import LOG, Loop
from headrace.engine.outage import Outage
from headrace.engine.telemetry import Telemetry
from headrace.model.envelopes import encode
from headrace.model.errors import BusUnavailableError, InvalidInputError, StoreUnavailableError
from headrace.model.event import Message, OutboxRow
from headrace.model.session import LeaderTerm, TermOverError
from headrace.ports.bus import BEHIND, Bus
from headrace.ports.outbox import Outbox

PUBLISHED, PARKED, WAITING = "headrace.events.publish", "headrace.events.park", "headrace.events.waiting"
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
        self._parked, self._later = ParkedLanes(outbox), LaterTopics(LOG)
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
        rows = await self._outbox.waiting_events(limit=self._options.batch, without=self._later.left_out())
        try:
            if rows:
                await self._relay(rows, term)
        except TermOverError:
            # The leadership does not know yet. Whoever leads now sends the rest, this one only under another term.
            self._telemetry.gauge(WAITING, 0)
            return
        await self._count()

    async def _relay(self, rows: Sequence[OutboxRow], term: LeaderTerm) -> None:
        free = await self._parked.hold(rows, term)
        if len(free) < len(rows) or len(rows) >= self._options.batch:
            self.wake()
        try:
            async with self._sending:
                done = await self._send(free)
                await self._mark(done.published)
                self._note_later(free, done)
        except BusUnavailableError as error:
            self._bus_outage.note(error)
            await self._wait()
            self.wake()
            return
        await self._put_by(done, term)

    def _note_later(self, rows: Sequence[OutboxRow], done: SortedBatch) -> None:
        seconds = self._later.note((row.outgoing.topic for row in rows), done.later)
        if seconds is not None:
            self.wake_in(seconds)

    async def _put_by(self, done: SortedBatch, term: LeaderTerm) -> None:
        """Park what was refused, and let what stands behind it wait."""
        if not done.refused:
            return
        for lane in done.stopped:
            self._parked.add(lane)
        await self._outbox.park_events(done.refused, term=term)
        LOG.warning("%d events are parked, the bus will never take them: %s", len(done.refused), done.refused[0][1])
        self._telemetry.count(PARKED, len(done.refused))
        if done.behind:
            await self._outbox.hold_events(done.behind, term=term)

    async def _send(self, rows: Sequence[OutboxRow]) -> SortedBatch:
        """Publish rows but those that cannot be written, and those behind them."""
        answers, sent, stopped = dict[int, str | None](), list[tuple[int, Message]](), set[Lane]()
        for row in rows:
            if lane_of(row) in stopped:
                answers[row.position] = BEHIND
                continue
            try:
                sent.append((row.position, self._message(row)))
            except InvalidInputError as error:
                answers[row.position] = str(error)
                stopped.add(lane_of(row))
        said = await self._bus.publish([message for _, message in sent]) if sent else []
        answers.update(zip((position for position, _ in sent), said, strict=True))
        done = SortedBatch()
        for row in rows:
            done.note(row, answers[row.position])
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
