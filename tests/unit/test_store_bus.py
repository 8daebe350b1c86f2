"""The store's bus over the log in memory: who reads what, from where on, and what happens when members come and go."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from headrace.buses.stored import StoreBus
from headrace.model.errors import BusUnavailableError, StoreUnavailableError
from headrace.model.event import Message
from headrace.model.message_log import Partition, Stored, partition_of
from headrace.ports.bus import BEHIND, Subscription, SubscriptionOptions
from headrace.ports.message_log import MessageLog
from headrace.ports.stores import Stores
from headrace.stores.memory import open_memory_stores
from headrace.testing.clock import FakeClock
from tests.waiting import wait_until

HOUR = timedelta(hours=1)
#: Rejoins every 10 ms by the event loop; the store's clock stands still, so that no membership ends by itself.
SHORT = timedelta(milliseconds=30)


@dataclass
class Reader:
    """A member of a group, and what it was told."""

    subscription: Subscription
    revoked: list[Partition] = field(default_factory=list)
    lost: list[Partition] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    #: The next offset of each partition.
    next: dict[Partition, int] = field(default_factory=dict)

    async def read(self, *, limit: int = 100, timeout: float = 0.0) -> list[str]:
        """Receive once, and return what the messages say."""
        found = await self.subscription.receive(limit=limit, timeout=timeout)
        self.next |= {delivery.place: delivery.offset + 1 for delivery in found}
        said = [(delivery.message.value or b"").decode() for delivery in found]
        self.seen += said
        return said

    async def read_until(self, *values: str) -> None:
        """Receive until all of these were seen."""

        async def saw() -> bool:
            await self.read(timeout=0.02)
            return set(values) <= set(self.seen)

        assert await wait_until(saw)


class World:
    """A log and buses over it."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.stores: Stores = open_memory_stores(self.clock)
        assert self.stores.events is not None
        self.log: MessageLog = self.stores.events.log

    def bus(self, *, partitions: int = 2, lease: timedelta = SHORT, poll: timedelta = SHORT) -> StoreBus:
        """Return a bus."""
        return StoreBus(self.log, self.stores.notifier, partitions=partitions, lease=lease, poll=poll)

    async def join(self, bus: StoreBus, *topics: str, on_revoked: Any = None) -> Reader:
        """Return a new member; asked to give up it ends at once."""
        reader = Reader.__new__(Reader)

        async def revoked(places: Sequence[Partition]) -> dict[Partition, int]:
            reader.revoked += places
            return {place: reader.next[place] for place in places if place in reader.next}

        options = SubscriptionOptions(
            "g", topics or ("t",), on_revoked or revoked, lambda gone: reader.lost.extend(gone)
        )
        reader.__init__(await bus.subscribe(options))  # type: ignore[misc]
        return reader


def say(*values: str, topic: str = "t") -> list[Message]:
    """Return messages; "a1" has the key a."""
    return [Message(topic, value[0], value.encode()) for value in values]


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    """Return an empty log, whose members have ids in the order of their coming: the first has the odd partition."""
    ids = itertools.count(1)
    monkeypatch.setattr("headrace.buses.stored.subscription.uuid4", lambda: UUID(int=next(ids)))
    made = World()
    yield made
    await made.stores.close()


def failing(patch: pytest.MonkeyPatch, log: MessageLog, verb: str, *, after: bool = False) -> None:
    """Let a verb of the log raise that the store is away; `after` it did what it was asked."""
    real = getattr(log, verb)

    async def fail(_: MessageLog, *args: Any, **named: Any) -> None:
        if after:
            await real(*args, **named)
        raise StoreUnavailableError("store away")

    patch.setattr(type(log), verb, fail)


async def test_what_is_published_is_read_in_order_per_key(world: World) -> None:
    """Also what was published before the group began."""
    bus = world.bus()
    assert await bus.publish(say("a1", "b1", "a2")) == [None, None, None]
    reader = await world.join(bus)
    await bus.publish(say("b2", "a3"))
    await reader.read_until("a1", "a2", "a3", "b1", "b2")
    assert sorted(reader.seen) == ["a1", "a2", "a3", "b1", "b2"]
    assert [value for value in reader.seen if value[0] == "a"] == ["a1", "a2", "a3"]


async def test_names_of_topics_that_no_broker_takes_are_refused(world: World) -> None:
    """The rest of the call is stored; what follows a refused one of its key is kept back."""
    bus = world.bus()
    long = "x" * 250
    messages = [*say("a1"), *say("a2", "a3", "b1", topic="no such"), *say("a4", topic=long), *say("a5")]
    answers = await bus.publish(messages)
    assert [answers[0], answers[2], answers[5]] == [None, BEHIND, None]
    assert answers[1] == answers[3] == "topic must be 1 to 249 letters, digits and . _ -, got 'no such'"
    assert (answers[4] or "").startswith("topic must be")
    reader = await world.join(bus, "*")
    assert await reader.read() == ["a1", "a5"]


async def test_a_hint_ends_the_wait(world: World) -> None:
    """Neither the poll nor the lease is waited for; timeouts without messages return nothing."""
    bus = world.bus(lease=HOUR, poll=HOUR)
    await bus.publish(say("a1"))
    reader = await world.join(bus)
    assert await reader.read() == ["a1"]
    assert await reader.read(timeout=0.01) == []
    waiting = asyncio.ensure_future(reader.read(timeout=60))
    await asyncio.sleep(0)
    await bus.publish(say("a2"))
    assert await waiting == ["a2"]


async def test_without_hints_the_poll_finds_what_came(world: World) -> None:
    """A hint may be lost: a closed bus hears none."""
    bus = world.bus(lease=HOUR)
    await bus.publish(say("a1"))
    reader = await world.join(bus)
    assert await reader.read() == ["a1"]
    assert await reader.read() == []
    await bus.close()
    await bus.publish(say("a2"))
    assert await reader.read() == []
    assert await reader.read(timeout=20) == ["a2"]


async def test_topics_that_come_later_are_read(world: World) -> None:
    """A subscription by the beginning of names takes them in."""
    bus = world.bus()
    reader = await world.join(bus, "out.*")
    assert await reader.read() == []
    await bus.publish(say("a1", topic="out.x") + say("a2", topic="other"))
    await reader.read_until("a1")
    assert reader.seen == ["a1"]


async def test_a_hint_that_brings_nothing_lets_a_member_look_for_new_topics(world: World) -> None:
    """Not before a tenth of the lease: many hints do not mean many joins."""
    bus = world.bus(lease=HOUR, poll=HOUR)
    reader = await world.join(bus, "out.*")
    await bus.publish(say("a1", topic="out.x"))
    assert await reader.read(timeout=0.01) == []
    reader.subscription._joined_at -= HOUR.total_seconds() / 9  # type: ignore[attr-defined]
    await bus.publish(say("a2", topic="out.x"))
    assert await reader.read(timeout=20) == ["a1", "a2"]


async def test_a_partition_goes_to_another_member_at_the_place_it_was_left(world: World) -> None:
    """The first is asked, what it has done is committed, the second goes on behind it."""
    bus = world.bus()
    keys = [key for key in "abcdefgh" if partition_of(key, 2) == 0][:1] + [
        key for key in "abcdefgh" if partition_of(key, 2) == 1
    ][:1]
    first = await world.join(bus)
    await bus.publish(say(*(f"{key}1" for key in keys)))
    await first.read_until(*(f"{key}1" for key in keys))
    second = await world.join(bus)

    async def revoked() -> bool:
        await first.read(timeout=0.02)
        await second.read(timeout=0.02)
        return bool(first.revoked)

    assert await wait_until(revoked)
    [given] = first.revoked
    await bus.publish(say(*(f"{key}2" for key in keys)))
    mine, theirs = (f"{keys[1 - given[1]]}2", f"{keys[given[1]]}2")
    await first.read_until(mine)
    await second.read_until(theirs)
    assert (theirs in first.seen, second.seen, first.lost) == (False, [theirs], [])


async def test_who_was_silent_too_long_has_lost_its_partitions(world: World) -> None:
    """It is told so once it asks again, and what it wants to note of them is refused."""
    bus = world.bus(partitions=1)
    first = await world.join(bus)
    await bus.publish(say("a1"))
    await first.read_until("a1")
    world.clock.advance(2 * SHORT)
    second = await world.join(bus)
    assert await second.read() == ["a1"]
    await first.subscription.commit({("t", 0): 1})
    assert first.lost == [("t", 0)]
    assert await world.log.log_backlog("g") == {("t", 0): 1}
    assert await first.read() == []


async def test_a_member_that_asks_again_in_time_keeps_its_partitions(world: World) -> None:
    """Receiving renews the membership, also while everything is paused."""
    bus = world.bus(partitions=1, lease=SHORT)
    first = await world.join(bus)
    await bus.publish(say("a1"))
    await first.read_until("a1")
    first.subscription.pause([("t", 0)])
    second = await world.join(bus)
    for _ in range(4):
        world.clock.advance(SHORT * 0.6)
        await first.read(timeout=0.02)
        await second.read(timeout=0.02)
    assert (first.lost, second.seen) == ([], [])


async def test_a_partition_that_was_lost_and_won_again_is_read_anew(world: World) -> None:
    """Its generation tells; what was received before is forgotten first."""
    bus = world.bus(partitions=1)
    reader = await world.join(bus)
    await bus.publish(say("a1"))
    await reader.read_until("a1")
    world.clock.advance(HOUR)
    reader.seen.clear()
    await reader.read_until("a1")
    assert (reader.lost, reader.revoked) == ([("t", 0)], [])


async def test_nothing_is_received_of_paused_partitions(world: World) -> None:
    """Others are read on; resumed ones go on where they were left."""
    bus = world.bus()
    by_partition = {partition_of(key, 2): key for key in "abcdefgh"}
    reader = await world.join(bus)
    await bus.publish(say(f"{by_partition[0]}1", f"{by_partition[1]}1"))
    await reader.read_until(f"{by_partition[0]}1", f"{by_partition[1]}1")
    reader.subscription.pause([("t", 0)])
    await bus.publish(say(f"{by_partition[0]}2", f"{by_partition[1]}2"))
    await reader.read_until(f"{by_partition[1]}2")
    assert await reader.read(timeout=0.05) == []
    reader.subscription.resume([("t", 0)])
    assert await reader.read() == [f"{by_partition[0]}2"]


async def test_partitions_take_turns(world: World) -> None:
    """One with many messages does not keep the others waiting."""
    bus = world.bus()
    by_partition = {partition_of(key, 2): key for key in "abcdefgh"}
    await bus.publish(say(*(f"{key}{number}" for key in by_partition.values() for number in range(10))))
    reader = await world.join(bus)
    for _ in range(2):
        assert {value[0] for value in await reader.read(limit=5)} == set(by_partition.values())
    turns = [{value[0] for value in await reader.read(limit=1)} for _ in range(2)]
    assert set.union(*turns) == set(by_partition.values())
    assert len(reader.seen) == 10


async def test_few_partitions_with_messages_among_many_take_turns(world: World) -> None:
    """Those that have none do not let one come before the other twice."""
    bus = world.bus(partitions=8, lease=HOUR)
    one, other = next(pair for pair in itertools.pairwise("abcdefgh") if len({partition_of(k, 8) for k in pair}) == 2)
    await bus.publish(say(*(f"{key}{number}" for key in (one, other) for number in range(4))))
    reader = await world.join(bus)
    first = [(await reader.read(limit=1))[0] for _ in range(8)]
    assert [value[0] for value in first] == [first[0][0], first[1][0]] * 4
    assert {first[0][0], first[1][0]} == {one, other}


async def test_a_partition_alone_with_messages_has_the_whole_limit(world: World) -> None:
    """Others that have none take no part of it."""
    bus = world.bus(partitions=8, lease=HOUR)
    await bus.publish(say(*(f"a{number}" for number in range(50))))
    reader = await world.join(bus)
    assert [len(await reader.read(limit=40)) for _ in range(2)] == [40, 10]


async def test_who_leaves_lets_others_read_at_once(world: World) -> None:
    """What has ended is committed; nobody waits for the end of a lease."""
    bus = world.bus(partitions=1)
    first, second = await world.join(bus), await world.join(bus)
    await bus.publish(say("a1"))
    await first.read_until("a1")
    await first.subscription.close()
    assert first.revoked == [("t", 0)]
    await bus.publish(say("a2"))
    await second.read_until("a2")
    assert second.seen == ["a2"]


async def test_a_member_that_takes_its_time_to_give_up_stays_one(world: World) -> None:
    """The membership is renewed while handlers end."""
    bus = world.bus(partitions=1)
    joins, goes_on = 0, asyncio.Event()
    join = world.log.join_group

    async def count(*args: Any, **named: Any) -> Any:
        nonlocal joins
        joins += 1
        return await join(*args, **named)

    async def take_time(places: Sequence[Partition]) -> dict[Partition, int]:
        await goes_on.wait()
        return dict.fromkeys(places, 1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(world.log), "join_group", lambda _, *args, **named: count(*args, **named))
        await bus.publish(say("a1"))
        reader = await world.join(bus, on_revoked=take_time)
        closing = asyncio.ensure_future(reader.subscription.close())
        await wait_until(lambda: joins >= 4)
        assert not closing.done()
        goes_on.set()
        await closing
    assert await world.log.log_backlog("g") == {("t", 0): 0}


async def test_who_is_cancelled_while_it_joins_is_no_member(world: World) -> None:
    """The answer was on its way: nobody waits for the lease of one that never was."""
    bus, joined = world.bus(partitions=1, lease=HOUR), asyncio.Event()
    await bus.publish(say("a1"))
    join = world.log.join_group

    async def stall(*args: Any, **named: Any) -> None:
        await join(*args, **named)
        joined.set()
        await asyncio.Event().wait()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(world.log), "join_group", lambda _, *args, **named: stall(*args, **named))
        joining = asyncio.ensure_future(world.join(bus))
        await joined.wait()
        assert [group.members for group in await world.log.log_groups()] == [1]
        joining.cancel()
        with pytest.raises(asyncio.CancelledError):
            await joining
    assert [group.members for group in await world.log.log_groups()] == [0]
    reader = await world.join(bus)
    assert await reader.read() == ["a1"]


async def test_the_rest_is_read_while_partitions_are_given_up(world: World) -> None:
    """What is given up is delivered no more; the member stays one, and nobody else reads it before it is done."""
    bus, goes_on = world.bus(), asyncio.Event()
    by_partition = {partition_of(key, 2): key for key in "abcdefgh"}
    asked: list[Partition] = []

    async def take_time(places: Sequence[Partition]) -> dict[Partition, int]:
        asked.extend(places)
        await goes_on.wait()
        return dict.fromkeys(places, 1)

    await bus.publish(say(*(f"{key}1" for key in by_partition.values())))
    first = await world.join(bus, on_revoked=take_time)
    await first.read_until(*(f"{key}1" for key in by_partition.values()))
    second = await world.join(bus)

    async def is_asked() -> bool:
        await first.read(timeout=0.02)
        return bool(asked)

    assert await wait_until(is_asked)
    [(_, given)] = asked
    theirs, mine = by_partition[given], by_partition[1 - given]
    for number in (2, 3, 4):
        await bus.publish(say(f"{theirs}{number}", f"{mine}{number}"))
        await first.read_until(f"{mine}{number}")
        world.clock.advance(SHORT * 0.4)
        assert await second.read(timeout=0.02) == []
    assert (f"{theirs}2" in first.seen, first.lost, asked) == (False, [], [("t", given)])
    goes_on.set()
    await second.read_until(f"{theirs}2", f"{theirs}3", f"{theirs}4")
    assert second.seen == [f"{theirs}2", f"{theirs}3", f"{theirs}4"]


async def test_a_closed_bus_ends_what_is_given_up(world: World) -> None:
    """No task stays behind of a subscription that nobody closed."""
    bus, asked = world.bus(), asyncio.Event()

    async def for_ever(places: Sequence[Partition]) -> dict[Partition, int]:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            asked.clear()
        return {}

    await bus.publish(say("a1"))
    first = await world.join(bus, on_revoked=for_ever)
    await world.join(bus)

    async def is_asked() -> bool:
        await first.read(timeout=0.02)
        return asked.is_set()

    assert await wait_until(is_asked)
    await bus.close()
    assert await wait_until(lambda: not asked.is_set())


async def test_a_store_that_is_away_is_a_bus_that_is_away(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every verb says so, and goes on once the store is back."""
    bus = world.bus()
    await bus.publish(say("a1"))
    reader = await world.join(bus)
    await reader.read_until("a1")
    verbs = ("append_messages", "join_group", "read_messages", "commit_offsets", "give_up")
    with monkeypatch.context() as patch:
        for verb in verbs:
            failing(patch, world.log, verb)
        tries: list[Awaitable[Any]] = [
            bus.publish(say("a2")), world.join(bus), reader.subscription.commit(reader.next),
            reader.read(timeout=0.1), reader.subscription.close(),
        ]  # fmt: skip
        for one in tries:
            with pytest.raises(BusUnavailableError, match="store away"):
                await one


async def test_a_commit_whose_answer_was_lost_hides_nothing(world: World) -> None:
    """What comes later is read although nothing is committed any more."""
    bus = world.bus(partitions=1, lease=HOUR)
    await bus.publish(say("a1", "a2", "a3"))
    reader = await world.join(bus)
    assert len(await reader.read()) == 3
    with pytest.MonkeyPatch.context() as patch:
        failing(patch, world.log, "commit_offsets", after=True)
        with pytest.raises(BusUnavailableError):
            await reader.subscription.commit(reader.next)
    await bus.publish(say("a4"))
    await reader.read_until("a4")


async def test_what_could_not_be_given_up_is_read_anew(world: World) -> None:
    """Who was asked has forgotten it: from what was committed last it comes again."""
    bus = world.bus(partitions=2)
    await bus.publish(say("a1", "b1", "c1", "d1", "e1"))
    first = await world.join(bus)
    await first.read_until("a1", "b1", "c1", "d1", "e1")
    second = await world.join(bus)
    with pytest.MonkeyPatch.context() as patch:
        failing(patch, world.log, "commit_offsets")
        with pytest.raises(BusUnavailableError):
            await asyncio.wait_for(_read_on(first), 20)
    await second.subscription.close()
    first.seen.clear()
    [place] = first.revoked
    await first.read_until(
        *(value for value in ("a1", "b1", "c1", "d1", "e1") if partition_of(value[0], 2) == place[1])
    )


async def _read_on(reader: Reader) -> None:
    while True:
        await reader.read(timeout=0.02)


@contextmanager
def answers_held(log: MessageLog) -> Iterator[tuple[asyncio.Event, asyncio.Event]]:
    """Hold back what is read; the events tell that there was an answer, and let it go."""
    read, reached, goes_on = log.read_messages, asyncio.Event(), asyncio.Event()

    async def hold(*args: Any, **named: Any) -> list[Stored]:
        found = await read(*args, **named)
        reached.set()
        await goes_on.wait()
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(log), "read_messages", lambda _, *args, **named: hold(*args, **named))
        yield reached, goes_on


async def test_who_is_cancelled_while_it_reads_has_read_nothing(world: World) -> None:
    """The answer was on its way: what it brought comes again."""
    bus = world.bus()
    await bus.publish(say("a1", "b1", "c1", "d1", "e1"))
    reader = await world.join(bus)
    with answers_held(world.log) as (reached, _):
        reading = asyncio.ensure_future(reader.read())
        await reached.wait()
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    await reader.read_until("a1", "b1", "c1", "d1", "e1")


async def test_what_is_lost_while_it_is_read_is_not_delivered(world: World) -> None:
    """Another reads it by then; the answer was on its way."""
    bus = world.bus(partitions=1, lease=HOUR)
    await bus.publish(say("a1"))
    first = await world.join(bus)
    with answers_held(world.log) as (reached, goes_on):
        reading = asyncio.ensure_future(first.read())
        await reached.wait()
        world.clock.advance(2 * HOUR)
        second = await world.join(bus)
        await first.subscription.commit({("t", 0): 0})
        goes_on.set()
        assert await reading == []
    assert (first.lost, await second.read()) == ([("t", 0)], ["a1"])


async def test_what_is_not_kept_any_more_is_passed_over(world: World) -> None:
    """Who was taken for gone, and is not, reads on behind what was removed meanwhile."""
    bus = world.bus(partitions=1, lease=HOUR)
    await bus.publish(say("a1", "a2"))
    reader = await world.join(bus)
    assert await reader.read(limit=1) == ["a1"]
    world.clock.advance(3 * HOUR)
    assert await world.log.prune_messages(older_than=HOUR, limit=9) == 2
    assert await reader.read() == []
    await bus.publish(say("a3"))
    await reader.read_until("a3")
    assert (reader.seen, reader.lost) == (["a1", "a3"], [])


@pytest.mark.parametrize(("partitions", "limit", "reads"), [(1, 9, 1), (1, 2, 3), (2, 4, 2), (4, 2, 3)])
async def test_is_read_again_at_once_only_where_more_may_lie(
    world: World, monkeypatch: pytest.MonkeyPatch, partitions: int, limit: int, reads: int
) -> None:
    """Neither a hint nor the poll is waited for behind a full part of the limit; a short one was all there was."""
    keys = [next(key for key in "abcdefghijklmnop" if partition_of(key, partitions) == n) for n in range(partitions)]
    values = [f"{key}{number}" for key in keys for number in range(4 // partitions)]
    bus = world.bus(partitions=partitions, lease=HOUR, poll=HOUR)
    await bus.publish(say(*values))
    reader = await world.join(bus)
    asked: list[int] = []
    read = type(world.log).read_messages

    async def counted(log: Any, starts: Any, *, limit: int) -> list[Stored]:
        found: list[Stored] = await read(log, starts, limit=limit)
        asked.append(len(found))
        return found

    monkeypatch.setattr(type(world.log), "read_messages", counted)
    while len(reader.seen) < len(values):
        assert await reader.read(limit=limit, timeout=0.01)
    await reader.read(limit=limit, timeout=0.01)
    assert (sorted(reader.seen), len(asked)) == (sorted(values), reads)
