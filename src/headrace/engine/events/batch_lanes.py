"""Lanes whose messages are handled together, several of one lane and of several lanes in one call.

A call begins when no other runs, with what is there; while one runs, when `batch_size` messages wait or the first of
them has waited for `max_wait`, as long as there is a slot. So nobody waits for company on a quiet topic, and calls are
the fuller the more comes. Guaranteed: messages of a lane are in one call at a time, in order. Not guaranteed: that a
call is full.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from headrace.engine.events.lane import PAUSES, Handle, Lane
from headrace.model.gathering import Gather
from headrace.ports.bus import Delivery

LOG = logging.getLogger("headrace.events")

#: Handles messages, and returns those that are to be handled alone.
Together = Callable[[Sequence[Delivery]], Awaitable[list[Delivery]]]


@dataclass(slots=True, eq=False)
class BatchLane(Lane):
    """Messages of a key that go into calls together with those of others."""

    gathering: LaneGathering = field(kw_only=True)
    #: How many of the first ones are in a call, or behind one that is handled alone.
    taken: int = 0
    #: Since when the first of them waits for a call, by the event loop's clock.
    since: float = 0.0
    #: What a call has left to be handled alone.
    answer: asyncio.Future[list[Delivery]] | None = None

    def put(self, delivery: Delivery) -> None:
        """Let a message wait behind the others, and for a call."""
        self.waiting.append(delivery)
        self.gathering.look_soon()

    async def work(self, handle: Handle, slots: asyncio.Semaphore, before: asyncio.Task[None] | None) -> None:
        """Handle what waits, in order, until there is nothing; `before`: a lane of this key that is still ending."""
        if before is not None:
            await asyncio.wait([before])
        while self.waiting and not self.closed:
            alone = await self.gathering.join(self)
            for delivery in list(islice(self.waiting, self.taken)):
                if alone and delivery is alone[0]:
                    await self._until_handled(delivery, handle, slots)
                    self.gathering.look_soon()
                    alone.pop(0)
                if not self.closed:
                    self.progress.end(self.waiting.popleft().offset)
                    self.taken -= 1

    def drop_rest(self) -> None:
        """Leave what has not begun to whoever reads the partition next."""
        while len(self.waiting) > self.taken:
            self.waiting.pop()
        if not self.taken:
            self.close()


class LaneGathering:
    """The calls of one consumer, and the lanes that wait for one."""

    def __init__(self, rule: Gather, slots: asyncio.Semaphore, handle: Together) -> None:
        """`handle` is called again, ever later, should it raise."""
        self._rule, self._slots, self._handle = rule, slots, handle
        #: In the order in which they came.
        self._ready: dict[BatchLane, None] = {}
        self._calls: dict[asyncio.Task[None], list[BatchLane]] = {}
        self._timer: asyncio.TimerHandle | None = None
        #: Whether it is looked at in this turn of the event loop, behind all that comes in it.
        self._looks = False

    async def join(self, lane: BatchLane) -> list[Delivery]:
        """Wait for a call that takes messages of a lane, `lane.taken`, and return those of them to be handled alone."""
        loop = asyncio.get_running_loop()
        lane.since, lane.answer = loop.time(), loop.create_future()
        self._ready[lane] = None
        self.look_soon()
        try:
            return await lane.answer
        except asyncio.CancelledError:
            self._ready.pop(lane, None)
            for call, lanes in self._calls.items():
                if lane in lanes and all(one.answer is None or one.answer.done() for one in lanes):
                    # The last to leave waits, so that no handler outlives the lanes that it runs for.
                    call.cancel()
                    await asyncio.wait([call])
                    break
            raise

    def look_soon(self) -> None:
        """Look behind all that comes in this turn of the event loop, so that it goes together."""
        if not self._looks:
            self._looks = True
            asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        self._looks = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._ready or self._slots.locked():
            return
        loop = asyncio.get_running_loop()
        due = next(iter(self._ready)).since + self._rule.max_wait.total_seconds()
        if self._calls and not self._is_full() and loop.time() < due:
            self._timer = loop.call_at(due, self.look_soon)
            return
        self._begin()
        self.look_soon()  # for the next one, once this has its slot

    def _is_full(self) -> bool:
        count = 0
        for lane in self._ready:
            count += len(lane.waiting)
            if count >= self._rule.batch_size:
                return True
        return False

    def _begin(self) -> None:
        """Begin a call with the first of what waits."""
        lanes: list[BatchLane] = []
        deliveries: list[Delivery] = []
        while self._ready and len(deliveries) < self._rule.batch_size:
            lane = next(iter(self._ready))
            del self._ready[lane]
            lane.taken = min(len(lane.waiting), self._rule.batch_size - len(deliveries))
            lane.begun = True
            lanes.append(lane)
            deliveries += islice(lane.waiting, lane.taken)
        call = asyncio.create_task(self._call(lanes, deliveries), name="headrace-events-call")
        self._calls[call] = lanes
        call.add_done_callback(self._end)

    def _end(self, call: asyncio.Task[None]) -> None:
        del self._calls[call]
        self.look_soon()

    async def _call(self, lanes: list[BatchLane], deliveries: list[Delivery]) -> None:
        pause = PAUSES[0]
        while True:
            try:
                async with self._slots:
                    alone = await self._handle(deliveries)
                break
            except Exception:
                LOG.exception("the handling of %d messages failed, trying again", len(deliveries))
            await asyncio.sleep(pause)
            pause = min(2 * pause, PAUSES[1])
        left = {id(delivery) for delivery in alone}
        for lane in lanes:
            if lane.answer is not None and not lane.answer.done():
                own = islice(lane.waiting, lane.taken)
                lane.answer.set_result([delivery for delivery in own if id(delivery) in left])
