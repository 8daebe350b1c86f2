"""Consumers that handle messages together: when a call begins, order per key, and partitions that come and go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from random import Random

import pytest

from headrace.engine.events.consumer import Consumer, ConsumerOptions
from headrace.model.gathering import Gather
from headrace.ports.bus import Delivery
from tests.unit.event_parts import TOPIC, HandBus, delivery
from tests.waiting import wait_until

PLACE = (TOPIC, 0)
LONG = timedelta(hours=1)


class Hands:
    """A handler of several messages that may be held up, and of those that it leaves to be handled alone."""

    def __init__(self, *alone: int) -> None:
        self.calls: list[list[int]] = []
        self.single: list[int] = []
        self.done: list[tuple[str, int]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.single_gate = asyncio.Event()
        self.single_gate.set()
        self.cancelled = 0
        self.fails = 0
        self._alone = alone
        self._running: set[tuple[int, str]] = set()

    async def together(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """Handle messages, once the gate is open."""
        self.calls.append([one.offset for one in deliveries])
        if self.fails:
            self.fails -= 1
            raise RuntimeError("as planned")
        keys = {(one.partition, one.message.key) for one in deliveries}
        assert not keys & self._running, "messages of one key in two calls at once"
        self._running |= keys
        try:
            await asyncio.sleep(0)
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self._running -= keys
        left: list[Delivery] = []
        for one in deliveries:
            if one.offset in self._alone or any(one.message.key == before.message.key for before in left):
                left.append(one)
        self.done += [(one.message.key, one.offset) for one in deliveries if one not in left]
        return left

    async def take(self, one: Delivery) -> None:
        """Handle one message alone."""
        self.single.append(one.offset)
        await self.single_gate.wait()
        self.done.append((one.message.key, one.offset))


@asynccontextmanager
async def consuming(
    bus: HandBus, hands: Hands, *, size: int = 10, wait: timedelta = LONG, concurrency: int = 4
) -> AsyncIterator[Consumer]:
    """Run a consumer of the bus that handles messages together."""
    options = ConsumerOptions("g", (TOPIC,), concurrency, revoke_seconds=0.2, gather=Gather(size, wait))
    consumer = Consumer(bus, options, hands.take, together=hands.together)
    consumer.start()
    try:
        yield consumer
    finally:
        await consumer.stop(timedelta(milliseconds=50))


async def test_a_lone_message_is_handled_at_once() -> None:
    """Nobody waits for company on a quiet topic."""
    bus, hands = HandBus(), Hands()
    async with consuming(bus, hands):
        for number in range(3):
            bus.put(delivery(number))
            await wait_until(lambda number=number: len(hands.done) == number + 1)
        await wait_until(lambda: bus.committed.get(PLACE) == 3)
    assert hands.calls == [[0], [1], [2]]


async def test_what_comes_while_a_call_runs_goes_together() -> None:
    """All that waits, of one key and of several, up to the size; a full call begins beside the other."""
    bus, hands = HandBus(), Hands()
    hands.gate.clear()
    async with consuming(bus, hands, size=10):
        bus.put(delivery(0, "a"))
        await wait_until(lambda: hands.calls)
        bus.put(*(delivery(number, f"k{number % 3}") for number in range(1, 8)))
        await wait_until(lambda: bus.arrived.empty())
        assert hands.calls == [[0]]
        bus.put(*(delivery(number, f"k{number % 3}") for number in range(8, 12)))
        await wait_until(lambda: len(hands.calls) == 2)
        assert len(hands.calls[1]) == 10
        hands.gate.set()
        await wait_until(lambda: bus.committed.get(PLACE) == 12)
    assert sorted(number for call in hands.calls for number in call) == list(range(12))


async def test_a_call_begins_beside_another_after_the_longest_wait() -> None:
    """One that does not end holds up nobody else for longer."""
    bus, hands = HandBus(), Hands()
    hands.gate.clear()
    async with consuming(bus, hands, wait=timedelta(milliseconds=20)):
        bus.put(delivery(0, "a"))
        await wait_until(lambda: hands.calls)
        bus.put(delivery(1, "b"), delivery(2, "c"))
        await wait_until(lambda: len(hands.calls) == 2)
        assert hands.calls[1] == [1, 2]
        hands.gate.set()


async def test_no_more_calls_run_at_once_than_there_are_slots() -> None:
    """What waits for a slot goes into fuller calls."""
    bus, hands = HandBus(), Hands()
    hands.gate.clear()
    async with consuming(bus, hands, size=5, concurrency=2):
        bus.put(*(delivery(number, f"k{number}") for number in range(25)))
        await wait_until(lambda: len(hands.calls) == 2)
        await wait_until(lambda: bus.arrived.empty())
        assert len(hands.calls) == 2
        hands.gate.set()
        await wait_until(lambda: bus.committed.get(PLACE) == 25)
    assert [len(call) for call in hands.calls] == [5] * 5


async def test_one_that_goes_alone_holds_up_its_key_and_no_other() -> None:
    """What stands behind it in its call is done, what comes later waits, and nothing behind it is committed."""
    bus, hands = HandBus(), Hands(1)
    hands.single_gate.clear()
    async with consuming(bus, hands):
        bus.put(delivery(0, "a"), delivery(1, "b"), delivery(2, "c"))
        await wait_until(lambda: hands.single == [1])
        bus.put(delivery(3, "b"), delivery(4, "a"))
        await wait_until(lambda: ("a", 4) in hands.done)
        await wait_until(lambda: bus.committed.get(PLACE) == 1)
        assert ("b", 3) not in hands.done
        hands.single_gate.set()
        await wait_until(lambda: bus.committed.get(PLACE) == 5)
    assert hands.done.index(("b", 1)) < hands.done.index(("b", 3))


async def test_a_call_that_fails_as_it_should_not_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """No message is passed over."""
    monkeypatch.setattr("headrace.engine.events.batch_lanes.PAUSES", (0.001, 0.001))
    bus, hands = HandBus(), Hands()
    hands.fails = 2
    async with consuming(bus, hands):
        bus.put(delivery(0), delivery(1))
        await wait_until(lambda: bus.committed.get(PLACE) == 2)
    assert hands.calls == [[0, 1]] * 3


async def test_what_runs_of_a_revoked_partition_ends_and_the_rest_is_left() -> None:
    """It is committed; what waited comes again, to whoever reads the partition then."""
    bus, hands = HandBus(), Hands()
    hands.gate.clear()
    async with consuming(bus, hands):
        bus.put(delivery(0, "a"))
        await wait_until(lambda: hands.calls)
        bus.put(delivery(1, "a"), delivery(2, "b"))
        await wait_until(lambda: bus.arrived.empty())
        revoked = asyncio.create_task(bus.revoke(PLACE))
        await asyncio.sleep(0)
        hands.gate.set()
        assert await revoked == {PLACE: 1}
        assert hands.calls == [[0]]
        bus.put(delivery(1, "a"), delivery(2, "b"))
        await wait_until(lambda: bus.committed.get(PLACE) == 3)
    assert [number for _, number in hands.done] == [0, 1, 2]


async def test_a_call_ends_when_all_its_partitions_are_lost_and_not_before() -> None:
    """Others of the call are still this member's."""
    bus, hands = HandBus(), Hands()
    hands.gate.clear()
    async with consuming(bus, hands) as consumer:
        bus.put(delivery(0, "a"), delivery(0, "b", partition=1))
        await wait_until(lambda: hands.calls == [[0, 0]])
        bus.lose(PLACE)
        assert consumer.unfinished == 1
        bus.put(delivery(0, "a"))
        await wait_until(lambda: bus.arrived.empty())
        assert hands.cancelled == 0
        bus.lose((TOPIC, 1))
        await wait_until(lambda: hands.cancelled == 1)
        hands.gate.set()
        await wait_until(lambda: bus.committed.get(PLACE) == 1)


@pytest.mark.parametrize("seed", range(5))
async def test_every_message_is_handled_once_in_the_order_of_its_key(seed: int) -> None:
    """Whatever comes in whatever portions, alone and together."""
    chance = Random(seed)
    bus, hands = HandBus(), Hands(*chance.sample(range(300), 30))
    async with consuming(bus, hands, size=7, wait=timedelta(milliseconds=1), concurrency=3):
        number = 0
        while number < 300:
            count = min(chance.randrange(1, 40), 300 - number)
            bus.put(*(delivery(one, f"k{chance.randrange(6)}") for one in range(number, number + count)))
            number += count
            await asyncio.sleep(0)
        await wait_until(lambda: bus.committed.get(PLACE) == 300)
    assert sorted(offset for _, offset in hands.done) == list(range(300))
    for key in {key for key, _ in hands.done}:
        own = [offset for name, offset in hands.done if name == key]
        assert own == sorted(own)
