"""Consumers: order per key, offsets after effects, and partitions that come and go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from random import Random

import pytest

from headrace.engine.events.consumer import Consumer, ConsumerOptions, Handle
from headrace.model.offsets import Progress
from headrace.ports.bus import Delivery
from tests.unit.event_parts import TOPIC, HandBus, delivery
from tests.waiting import wait_until

PLACE = (TOPIC, 0)
NO_GRACE = timedelta(milliseconds=50)


@asynccontextmanager
async def consuming(bus: HandBus, handle: Handle, concurrency: int = 4) -> AsyncIterator[Consumer]:
    """Run a consumer of the bus."""
    consumer = Consumer(bus, ConsumerOptions("g", (TOPIC,), concurrency, revoke_seconds=0.2), handle)
    consumer.start()
    try:
        yield consumer
    finally:
        await consumer.stop(NO_GRACE)


class Hands:
    """A handler that notes what it did and may be held up by key."""

    def __init__(self, *held: str) -> None:
        self.begun: list[int] = []
        self.done: list[int] = []
        self.gates = {key: asyncio.Event() for key in held}
        self.at_once: dict[str, int] = {}

    async def take(self, one: Delivery) -> None:
        """Handle a message, after its key's gate has opened."""
        key = one.message.key
        self.at_once[key] = self.at_once.get(key, 0) + 1
        assert self.at_once[key] == 1, "two messages of one key at once"
        self.begun.append(one.offset)
        if key in self.gates:
            await self.gates[key].wait()
        else:
            await asyncio.sleep(0)
        self.done.append(one.offset)
        self.at_once[key] -= 1


@pytest.mark.parametrize("seed", range(5))
def test_progress_is_the_first_offset_that_is_not_done(seed: int) -> None:
    """Whatever the order of ends, the offset to commit is that of the first unfinished message."""
    chance, progress = Random(seed), Progress()
    offsets = list(range(10, 40))
    for offset in offsets:
        progress.begin(offset)
    ended: set[int] = set()
    for offset in chance.sample(offsets, len(offsets)):
        progress.end(offset)
        ended.add(offset)
        first = next((one for one in offsets if one not in ended), 40)
        assert (progress.next_offset or 10) == first
    assert progress.take() == 40
    assert progress.take() is None
    assert progress.unfinished == 0


async def test_keys_go_on_beside_each_other_and_each_in_order() -> None:
    """A key that is held up holds up no other, and nothing behind it is committed."""
    bus, hands = HandBus(), Hands("slow")
    bus.put(delivery(0, "slow"), delivery(1, "a"), delivery(2, "b"), delivery(3, "a"), delivery(4, "slow"))
    async with consuming(bus, hands.take):
        await wait_until(lambda: len(hands.done) == 3)
        assert hands.done.index(1) < hands.done.index(3)
        assert hands.begun.count(4) == 0
        assert PLACE not in bus.committed
        hands.gates["slow"].set()
        await wait_until(lambda: bus.committed.get(PLACE) == 5)
    assert hands.done[-2:] == [0, 4]


async def test_no_more_handlers_run_at_once_than_asked_for() -> None:
    """The bound holds over all keys."""
    bus, most, now, gate = HandBus(), [0], [0], asyncio.Event()

    async def take(_: Delivery) -> None:
        now[0] += 1
        most[0] = max(most[0], now[0])
        await gate.wait()
        now[0] -= 1

    bus.put(*(delivery(number, f"k{number}") for number in range(12)))
    async with consuming(bus, take, concurrency=3):
        await wait_until(lambda: now[0] == 3)
        gate.set()
        await wait_until(lambda: bus.committed.get(PLACE) == 12)
    assert most[0] == 3


async def test_a_partition_far_ahead_is_paused_and_goes_on() -> None:
    """What cannot be handled yet is not read without end."""
    bus, hands = HandBus(), Hands("k")
    bus.put(*(delivery(number) for number in range(60)))
    async with consuming(bus, hands.take, concurrency=2):
        await wait_until(lambda: PLACE in bus.paused)
        hands.gates["k"].set()
        await wait_until(lambda: PLACE not in bus.paused and bus.committed.get(PLACE) == 60)


async def test_what_runs_of_a_revoked_partition_ends_and_is_committed() -> None:
    """The next member begins behind what has ended; what had not begun is its."""
    bus, hands = HandBus(), Hands("k")
    bus.put(delivery(0), delivery(1), delivery(0, "k2", partition=1))
    async with consuming(bus, hands.take):
        await wait_until(lambda: hands.begun.count(0) == 2)
        revoked = asyncio.create_task(bus.revoke(PLACE))
        await asyncio.sleep(0)
        hands.gates["k"].set()
        assert await revoked == {PLACE: 1}
        await wait_until(lambda: bus.committed.get((TOPIC, 1)) == 1)
        assert 1 not in hands.begun
        # It comes back, and goes on where it was left.
        bus.put(delivery(1))
        await wait_until(lambda: bus.committed.get(PLACE) == 2)


async def test_a_handler_that_does_not_end_is_cut_off_and_not_committed() -> None:
    """A revoked partition does not wait for ever."""
    bus, hands = HandBus(), Hands("k")
    bus.put(delivery(0))
    async with consuming(bus, hands.take) as consumer:
        await wait_until(lambda: hands.begun)
        assert await bus.revoke(PLACE) == {}
        assert consumer.unfinished == 0
    assert hands.done == []


async def test_stop_commits_what_has_ended_and_leaves_the_group() -> None:
    """A stopped consumer leaves nothing behind that another one would do again."""
    bus, hands = HandBus(), Hands()
    bus.put(delivery(0), delivery(1))
    async with consuming(bus, hands.take):
        await wait_until(lambda: len(hands.done) == 2)
    assert bus.committed == {PLACE: 2}
    assert bus.closed


async def test_a_bus_that_is_away_is_joined_later() -> None:
    """Nobody has to start a consumer again."""
    bus, hands = HandBus(away=1), Hands()
    bus.put(delivery(0))
    async with consuming(bus, hands.take):
        await wait_until(lambda: bus.committed.get(PLACE) == 1)


async def test_a_message_whose_handler_raises_is_tried_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An offset is not committed for a handler that failed in a way nobody foresaw, nor is its key wedged."""
    monkeypatch.setattr("headrace.engine.events.lane.PAUSES", (0.01, 0.01))
    bus, tries = HandBus(), list[int]()

    async def take(one: Delivery) -> None:
        if one.message.key == "bad":
            tries.append(one.offset)
            if len(tries) == 1:
                raise RuntimeError("as planned")
            if len(tries) == 2:
                # Something that the handler waits for was cancelled; it was not.
                raise asyncio.CancelledError

    bus.put(delivery(0, "good"), delivery(1, "bad"), delivery(2, "good"))
    async with consuming(bus, take):
        await wait_until(lambda: bus.committed.get(PLACE) == 3)
    assert tries == [1, 1, 1]
    assert "as planned" in caplog.text and "cancelled from within" in caplog.text


async def test_a_partition_that_comes_back_waits_for_what_still_runs_of_it() -> None:
    """A handler that is cut off and does not end at once is not overtaken by another one of its key."""
    bus, begun, ended, late = HandBus(), list[int](), list[int](), asyncio.Event()

    async def take(one: Delivery) -> None:
        begun.append(one.offset)
        try:
            if len(begun) == 1:
                await asyncio.Event().wait()
        finally:
            if len(begun) == 1:
                await late.wait()
        ended.append(one.offset)

    bus.put(delivery(0), delivery(1))
    async with consuming(bus, take):
        await wait_until(lambda: begun)
        bus.lose(PLACE)
        bus.put(delivery(0), delivery(1), delivery(2))
        await wait_until(lambda: bus.arrived.empty())
        before = bus.received
        await wait_until(lambda: bus.received > before + 1)
        assert begun == [0] and PLACE not in bus.committed
        late.set()
        await wait_until(lambda: bus.committed.get(PLACE) == 3)
        bus.put(delivery(3))
        await wait_until(lambda: bus.committed.get(PLACE) == 4)
    assert begun == [0, 0, 1, 2, 3] and ended == [0, 1, 2, 3]


async def test_one_message_that_takes_long_holds_up_its_key_alone() -> None:
    """Hundreds of others of the partition pass it; nothing is committed before it ends."""
    bus, hands = HandBus(), Hands("slow")
    bus.put(delivery(0, "slow"), *(delivery(n, f"k{n % 7}") for n in range(1, 400)))
    async with consuming(bus, hands.take, concurrency=2):
        await wait_until(lambda: len(hands.done) == 399)
        assert PLACE not in bus.committed
        hands.gates["slow"].set()
        await wait_until(lambda: bus.committed.get(PLACE) == 400)


async def test_a_backlog_of_one_key_does_not_wait_for_the_clock() -> None:
    """A partition that was paused goes on as soon as its handlers have room."""
    bus, hands = HandBus(), Hands()
    bus.put(*(delivery(n) for n in range(3_000)))
    async with consuming(bus, hands.take, concurrency=1):
        async with asyncio.timeout(10):
            await wait_until(lambda: len(hands.done) == 3_000)


async def test_a_commit_that_failed_is_made_again_without_new_messages() -> None:
    """What was done is noted once the bus is back, also when nothing more comes."""
    bus, hands = HandBus(commits_fail=1), Hands()
    bus.put(delivery(0))
    async with consuming(bus, hands.take):
        await wait_until(lambda: bus.committed.get(PLACE) == 1)


async def test_a_consumer_that_stops_stays_a_member_until_its_handlers_have_ended() -> None:
    """It goes on receiving, which keeps its membership, and begins nothing of what comes."""
    bus, hands = HandBus(), Hands("k")
    bus.put(delivery(0))
    consumer = Consumer(bus, ConsumerOptions("g", (TOPIC,)), hands.take)
    consumer.start()
    await wait_until(lambda: hands.begun)
    stopping = asyncio.create_task(consumer.stop(timedelta(seconds=20)))
    await asyncio.sleep(0)
    bus.put(delivery(1, "other"))
    before = bus.received
    await wait_until(lambda: bus.received > before + 2)
    assert not bus.closed
    hands.gates["k"].set()
    await stopping
    assert bus.closed and bus.committed == {PLACE: 1} and hands.begun == [0]


async def test_where_order_is_no_matter_the_messages_of_a_key_go_at_once_and_are_committed_in_order() -> None:
    """Each is a line by itself; what stands behind one that is not done is not committed."""
    bus, begun, gate = HandBus(), list[int](), asyncio.Event()

    async def take(one: Delivery) -> None:
        begun.append(one.offset)
        if one.offset == 0:
            await gate.wait()

    bus.put(delivery(0), delivery(1), delivery(2))
    consumer = Consumer(bus, ConsumerOptions("g", (TOPIC,), 4, ordered=False), take)
    consumer.start()
    try:
        await wait_until(lambda: len(begun) == 3)
        await wait_until(lambda: consumer.unfinished == 1)
        assert bus.committed == {}
        gate.set()
        await wait_until(lambda: bus.committed.get(PLACE) == 3)
    finally:
        await consumer.stop(NO_GRACE)


async def test_where_order_is_no_matter_what_has_no_slot_yet_does_not_begin_when_the_partition_goes() -> None:
    """Only what runs may end; the rest is for whoever reads the partition next."""
    bus, begun, gate = HandBus(), list[int](), asyncio.Event()

    async def take(one: Delivery) -> None:
        begun.append(one.offset)
        await gate.wait()

    bus.put(delivery(0), delivery(1), delivery(2))
    consumer = Consumer(bus, ConsumerOptions("g", (TOPIC,), 1, revoke_seconds=2.0, ordered=False), take)
    consumer.start()
    try:
        await wait_until(lambda: consumer.unfinished == 3 and begun)
        revoked = asyncio.create_task(bus.revoke(PLACE))
        await asyncio.sleep(0)
        gate.set()
        assert await revoked == {PLACE: 1}
        assert begun == [0]
    finally:
        await consumer.stop(NO_GRACE)
