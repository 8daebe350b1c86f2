"""MessageLog: messages lie in partitions at offsets without gaps, and go only once every group has them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from uuid import uuid4

import pytest

from headrace.model.event import Message
from headrace.model.message_log import Share, Stored, partition_of
from headrace.ports.message_log import MessageLog
from tests.conformance.events import Events
from tests.conformance.scenario import ALL, DAY, SECOND, Scenario
from tests.waiting import wait_until

KEPT = 7 * DAY


@pytest.fixture
def log(events: Events) -> MessageLog:
    """Return the message log of the backend."""
    return events.log


def message(number: int, key: str = "k", topic: str = "t") -> Message:
    """Return a message that says its number."""
    return Message(topic, key, str(number).encode())


async def read(log: MessageLog, partition: int = 0, *, topic: str = "t", offset: int = 0) -> list[int]:
    """Return the numbers of the messages of a partition, and see that their offsets have no gap."""
    found = await log.read_messages({(topic, partition): offset}, limit=ALL)
    assert (
        [one.offset for one in found] == list(range(found[0].offset, found[0].offset + len(found))) if found else True
    )
    return [int(one.message.value or b"0") for one in found]


async def read_to_the_end(log: MessageLog, group: str, *, before: int | None = None) -> None:
    """Join a group alone, commit all there is, or up to an offset, and leave."""
    member = uuid4()
    shares = (await log.join_group(group, member, ["t*"], lease=DAY)).shares
    ends = await log.log_backlog(group)
    done = [
        replace(share, offset=share.offset + ends[share.topic, share.partition] if before is None else before)
        for share in shares
    ]
    assert len(await log.commit_offsets(group, member, done)) == len(done)
    await log.give_up(group, member)


@pytest.mark.parametrize("value", [None, b"", b"\x00\xff"])
@pytest.mark.parametrize("key", ["", "k", "é\0 "])
async def test_a_message_is_read_as_it_was_stored(log: MessageLog, key: str, value: bytes | None) -> None:
    """Byte by byte, with headers in their order, also those that come twice."""
    given = Message("t", key, value, (("a", "1"), ("b", 'é "'), ("a", "2")))
    await log.append_messages([given], partitions=1)

    assert await log.read_messages({("t", 0): 0}, limit=ALL) == [Stored(0, 0, given)]


async def test_offsets_of_a_partition_have_no_gap(log: MessageLog) -> None:
    """They count from 0 in the order of the messages, over calls; each partition and topic for itself."""
    await log.append_messages([message(1), message(2, topic="u"), message(3)], partitions=1)
    await log.append_messages([message(4)], partitions=1)

    assert [one.offset for one in await log.read_messages({("t", 0): 0}, limit=ALL)] == [0, 1, 2]
    assert (await read(log), await read(log, topic="u")) == ([1, 3, 4], [2])


async def test_reading_goes_on_from_an_offset(log: MessageLog) -> None:
    """Up to a limit; behind the end there is nothing, nor in places that do not exist."""
    await log.append_messages([message(number) for number in range(5)], partitions=2)
    lane = partition_of("k", 2)

    found = await log.read_messages({("t", lane): 1}, limit=2)
    assert [(one.partition, one.offset, one.message.value) for one in found] == [(lane, 1, b"1"), (lane, 2, b"2")]
    for place, offset in ((("t", lane), 5), (("t", 1 - lane), 0), (("t", 7), 0), (("none", 0), 0)):
        assert await log.read_messages({place: offset}, limit=2) == []


async def test_partitions_with_messages_share_the_limit(log: MessageLog) -> None:
    """In the order they are asked for, each from its own offset; those that have no more take no part."""
    for topic, count in (("a", 6), ("b", 2), ("c", 6)):
        await log.append_messages([message(number, topic=topic) for number in range(count)], partitions=1)
    starts = {("c", 0): 1, ("none", 0): 0, ("b", 0): 2, ("a", 0): 3, ("a", 7): 0}

    found = await log.read_messages(starts, limit=5)
    assert [(one.message.topic, one.offset) for one in found] == [("c", 1), ("c", 2), ("a", 3), ("a", 4)]
    found = await log.read_messages({("b", 0): 0} | {place: starts[place] for place in (("c", 0), ("a", 0))}, limit=ALL)
    assert [(one.message.topic, one.offset) for one in found] == [
        *(("b", number) for number in range(2)), *(("c", number) for number in range(1, 6)),
        *(("a", number) for number in range(3, 6)),
    ]  # fmt: skip
    assert await log.read_messages({}, limit=ALL) == []


async def test_of_more_partitions_than_the_limit_the_first_give_one_message_each(log: MessageLog) -> None:
    """Those that have any."""
    topics = ["a", "b", "c", "d"]
    await log.append_messages([message(n, topic=topic) for topic in topics for n in range(2)], partitions=1)

    found = await log.read_messages({("a", 0): 2} | {(topic, 0): 0 for topic in reversed(topics[1:])}, limit=2)
    assert [(one.message.topic, one.offset) for one in found] == [("d", 0), ("c", 0)]


async def test_what_is_not_kept_any_more_takes_no_part_of_the_limit(on: Scenario, log: MessageLog) -> None:
    """An offset may lie before the first message that is kept, also where none is kept."""
    await log.append_messages([message(n, topic=topic) for topic in ("a", "b") for n in range(3)], partitions=1)
    on.clock.advance(KEPT + SECOND)
    await log.append_messages([message(n, topic="b") for n in range(3, 6)], partitions=1)
    assert await log.prune_messages(older_than=KEPT, limit=ALL) == 6

    found = await log.read_messages({("a", 0): 1, ("b", 0): 1}, limit=2)
    assert [(one.message.topic, one.offset) for one in found] == [("b", 3), ("b", 4)]


async def test_messages_of_a_key_lie_in_one_partition(log: MessageLog) -> None:
    """That of the key among as many as the topic got when it was new."""
    keys = [f"k{number}" for number in range(10)]
    await log.append_messages([message(0, key) for key in keys], partitions=3)
    await log.append_messages([message(1, key) for key in keys], partitions=7)

    for lane in range(7):
        found = await log.read_messages({("t", lane): 0}, limit=ALL)
        mine = [key for key in keys if partition_of(key, 3) == lane]
        assert [(one.message.key, one.message.value) for one in found] == [(k, n) for n in (b"0", b"1") for k in mine]


async def test_storing_hints(on: Scenario, log: MessageLog) -> None:
    """Who reads need not wait for the next poll."""
    heard: list[str] = []
    await on.stores.notifier.subscribe(heard.append)
    await log.append_messages([message(1)], partitions=1)

    await wait_until(lambda: "log" in heard)


async def test_storing_nothing_makes_nothing(log: MessageLog) -> None:
    """No topic, no message."""
    await log.append_messages([], partitions=1)

    assert (await log.join_group("g", uuid4(), ["*"], lease=DAY)).shares == ()


async def test_who_reads_behind_an_offset_misses_nothing(log: MessageLog) -> None:
    """While many write at once: whatever is seen at an offset, nothing appears before it later."""
    writers, count = 8, 6
    seen: list[int] = []

    async def follow() -> None:
        while len(seen) < writers * count:
            found = await log.read_messages({("t", 0): len(seen)}, limit=ALL)
            assert [one.offset for one in found] == list(range(len(seen), len(seen) + len(found)))
            seen.extend(int(one.message.value or b"") for one in found)
            await asyncio.sleep(0)

    async def write(writer: int) -> None:
        for number in range(0, count, 2):
            pair = [message(writer * count + number), message(writer * count + number + 1, "other")]
            await log.append_messages(pair, partitions=1)

    async with asyncio.timeout(20):
        await asyncio.gather(follow(), *(write(writer) for writer in range(writers)))
    assert sorted(seen) == list(range(writers * count))
    for writer in range(writers):
        own = [number for number in seen if number // count == writer]
        assert own == sorted(own)


async def test_messages_to_many_topics_at_once_wait_for_each_other(log: MessageLog) -> None:
    """Writers that name the same new topics in another order all come through."""
    topics = [f"t{number}" for number in range(4)]
    turns = [[message(n, topic=topic) for topic in (topics if n % 2 else topics[::-1])] for n in range(8)]
    await asyncio.gather(*(log.append_messages(messages, partitions=2) for messages in turns))

    lane = partition_of("k", 2)
    for topic in topics:
        assert sorted(await read(log, lane, topic=topic)) == list(range(8))


async def test_messages_go_after_their_time(on: Scenario, log: MessageLog) -> None:
    """Where no group reads them, by their age alone; what comes later keeps counting on."""
    await log.append_messages([message(1), message(2)], partitions=1)
    on.clock.advance(KEPT - SECOND)
    assert await log.prune_messages(older_than=KEPT, limit=ALL) == 0
    await log.append_messages([message(3)], partitions=1)
    on.clock.advance(2 * SECOND)

    assert await log.prune_messages(older_than=KEPT, limit=ALL) == 2
    on.clock.advance(KEPT)
    assert await log.prune_messages(older_than=KEPT, limit=ALL) == 1
    await log.append_messages([message(4)], partitions=1)
    assert [one.offset for one in await log.read_messages({("t", 0): 3}, limit=ALL)] == [3]


async def test_messages_wait_for_every_group_that_reads_their_topic(on: Scenario, log: MessageLog) -> None:
    """Also for one that nobody is in at the moment; not for one of other topics."""
    await log.append_messages([message(number) for number in range(4)], partitions=1)
    await log.append_messages([message(9, topic="other")], partitions=1)
    on.clock.advance(KEPT + SECOND)
    await log.join_group("elsewhere", uuid4(), ["other"], lease=DAY)
    await read_to_the_end(log, "fast")
    await read_to_the_end(log, "slow", before=1)

    assert await log.prune_messages(older_than=KEPT, limit=ALL) == 1
    assert (await read(log), await read(log, topic="other")) == ([1, 2, 3], [9])
    await read_to_the_end(log, "slow", before=3)
    assert await log.prune_messages(older_than=KEPT, limit=ALL) == 2
    assert await read(log) == [3]


async def test_a_partition_that_nobody_holds_yet_waits_for_its_group(on: Scenario, log: MessageLog) -> None:
    """A member that has another part of the topic reads for the whole group: what is free is still to be read."""
    keys = [next(f"k{n}" for n in range(99) if partition_of(f"k{n}", 2) == lane) for lane in range(2)]
    await log.append_messages([message(lane, keys[lane]) for lane in range(2)], partitions=2)
    first, second = sorted((uuid4(), uuid4()))
    await log.join_group("g", first, ["t"], lease=100 * DAY)
    await log.join_group("g", second, ["t"], lease=100 * DAY)
    await log.give_up("g", first, [("t", 1)])
    share = (await log.join_group("g", first, ["t"], lease=100 * DAY)).shares[0]
    await log.commit_offsets("g", first, [replace(share, offset=1)])
    on.clock.advance(KEPT + SECOND)

    assert await log.prune_messages(older_than=KEPT, limit=ALL) == 1
    assert [await read(log, lane) for lane in range(2)] == ([[], [1]] if share.partition == 0 else [[0], []])


async def test_removing_stops_at_its_limit_and_needs_the_term(on: Scenario, log: MessageLog) -> None:
    """Under a term that is over nothing goes; the oldest of a partition go first, the next calls go on."""
    await log.append_messages([message(number) for number in range(5)], partitions=1)
    on.clock.advance(KEPT + SECOND)
    term = await on.term()

    assert await log.prune_messages(older_than=KEPT, limit=2, term=replace(term, session=uuid4())) == 0
    assert await log.prune_messages(older_than=KEPT, limit=2, term=term) == 2
    assert await read(log) == [2, 3, 4]
    assert [await log.prune_messages(older_than=KEPT, limit=2, term=term) for _ in range(3)] == [2, 1, 0]


async def test_a_new_group_begins_at_the_first_message_that_is_kept(on: Scenario, log: MessageLog) -> None:
    """Whatever was removed before it came is not to be read by it."""
    await log.append_messages([message(number) for number in range(3)], partitions=1)
    on.clock.advance(KEPT + SECOND)
    await log.prune_messages(older_than=KEPT, limit=2)

    [share] = (await log.join_group("g", uuid4(), ["t"], lease=DAY)).shares
    found = await log.read_messages({("t", 0): share.offset}, limit=ALL)
    assert [one.offset for one in found] == [2]
    assert await log.log_backlog("g") == {("t", 0): 1}
    assert share == Share("t", 0, share.generation, share.offset)
