"""Races on the log of messages: offsets in the order of commits, and one reader of a partition whatever happens."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from headrace.model.errors import ConflictError, HeadraceError
from headrace.model.event import Message
from headrace.model.message_log import Membership, Partition, Share, partition_of
from headrace.ports.message_log import MessageLog
from tests.backends.postgres import stores_on
from tests.integration.postgres_setup import connection, schema_stores
from tests.integration.test_postgres_lock_order import deadlocks
from tests.integration.test_postgres_races import lock_waits
from tests.waiting import wait_until

LEASE = timedelta(minutes=1)
HOLD_GROUP = 'SELECT FROM "{schema}".log_groups FOR UPDATE'
HOLD_PARTITIONS = 'SELECT FROM "{schema}".log_partitions FOR UPDATE'
TAKE_AWAY = 'UPDATE "{schema}".log_shares SET member = $1, generation = generation + 1'
RESTART = 'TRUNCATE "{schema}".log_topics, "{schema}".log_partitions, "{schema}".log_messages RESTART IDENTITY'
REFUSE = 'ALTER TABLE "{schema}".log_messages ADD CONSTRAINT refuse CHECK (false)'
ALLOW = 'ALTER TABLE "{schema}".log_messages DROP CONSTRAINT refuse'
END_LEASES = "UPDATE \"{schema}\".log_members SET expires_at = now() - interval '1 second' WHERE member = $1"


def message(topic: str, key: str, value: int) -> Message:
    """Return a message that counts."""
    return Message(topic, key, str(value).encode(), (("key", key),))


async def read_all(log: MessageLog, topic: str, partitions: int) -> dict[str, list[int]]:
    """Return what is in a topic, by key; see that offsets have no gap."""
    found: dict[str, list[int]] = {}
    for number in range(partitions):
        rows = await log.read_messages({(topic, number): 0}, limit=100_000)
        assert [row.offset for row in rows] == list(range(len(rows)))
        for row in rows:
            assert partition_of(row.message.key, partitions) == number
            found.setdefault(row.message.key, []).append(int(row.message.value or b""))
    return found


async def test_who_leaves_waits_for_its_own_join() -> None:
    """One that was cancelled while it joined leaves no member behind, although its join is done later."""
    async with schema_stores() as (schema, stores), connection() as other:
        assert stores.events is not None
        log, member = stores.events.log, uuid4()
        await log.append_messages([message("a", "k", 1)], partitions=1)
        await log.join_group("g", uuid4(), ["a"], lease=LEASE)
        transaction = other.transaction()
        await transaction.start()
        await other.execute(HOLD_GROUP.format(schema=schema))
        joining = asyncio.ensure_future(log.join_group("g", member, ["a"], lease=LEASE))
        await lock_waits(schema, 1)
        leaving = asyncio.ensure_future(log.give_up("g", member))
        await lock_waits(schema, 2)
        await transaction.rollback()
        await asyncio.gather(joining, leaving)
        [group] = await log.log_groups()
    assert group.members == 1


async def test_groups_that_are_forgotten_while_members_come_and_go() -> None:
    """No deadlock; a group that is there in the end knows its member, whose offset is where it says."""
    before = deadlocks()
    async with schema_stores(max_pool_size=20) as (_, stores):
        assert stores.events is not None
        log = stores.events.log
        await log.append_messages([message("a", str(key), 1) for key in range(20)], partitions=4)

        async def come_and_go() -> None:
            member = uuid4()
            for _ in range(10):
                shares = (await log.join_group("g", member, ["a"], lease=LEASE)).shares
                await log.commit_offsets("g", member, shares)
                await log.give_up("g", member)

        async def forget() -> None:
            for _ in range(20):
                with suppress(ConflictError):
                    await log.forget_group("g")

        await asyncio.gather(*(come_and_go() for _ in range(4)), forget(), forget())
        assert len((await log.join_group("g", uuid4(), ["a"], lease=LEASE)).shares) == 4
        [group] = await log.log_groups()
    assert (group.members, group.backlog, deadlocks()) == (1, 20, before)


async def test_many_writers_of_new_topics_lose_nothing() -> None:
    """Sixteen at once make the same topics and write into them, in all orders: every message once, in its order.

    Who reads behind the last offset all the while misses none of them.
    """
    before, topics, rounds, writers = deadlocks(), ["a", "b", "c"], 10, 16
    async with schema_stores(max_pool_size=20) as (_, stores):
        assert stores.events is not None
        log, seen = stores.events.log, Counter[int]()
        written = asyncio.Event()

        async def write(writer: int) -> None:
            for turn in range(rounds):
                order = random.Random(writer * rounds + turn).sample(topics, len(topics))
                batch = [message(topic, f"w{writer}", turn) for topic in order]
                await log.append_messages(batch, partitions=4)

        async def tail(number: int) -> None:
            offset, last = 0, False
            while not last:
                last = written.is_set()  # asked before reading: then nothing is missed at the end
                rows = await log.read_messages({("a", number): offset}, limit=7)
                seen.update({number: len(rows)})
                assert [row.offset for row in rows] == list(range(offset, offset + len(rows)))
                offset += len(rows)
                last = last and not rows

        tails = [asyncio.create_task(tail(number)) for number in range(4)]
        await asyncio.gather(*(write(writer) for writer in range(writers)))
        written.set()
        await asyncio.gather(*tails)
        found = [await read_all(log, topic, 4) for topic in topics]
    assert found == [{f"w{writer}": list(range(rounds)) for writer in range(writers)}] * 3
    assert seen.total() == rounds * writers
    assert deadlocks() == before


async def test_offsets_are_given_out_behind_the_commit_of_those_before() -> None:
    """A writer that finds its partition locked waits, and goes on behind what that transaction wrote."""
    async with schema_stores() as (schema, stores), connection() as other:
        assert stores.events is not None
        log = stores.events.log
        await log.append_messages([message("a", "k", 0)], partitions=1)
        transaction = other.transaction()
        await transaction.start()
        await other.execute(HOLD_PARTITIONS.format(schema=schema))
        writing = asyncio.create_task(log.append_messages([message("a", "k", 2)], partitions=1))
        await lock_waits(schema)
        await other.execute(f'UPDATE "{schema}".log_partitions SET next = next + 1')
        await other.execute(
            f"""INSERT INTO "{schema}".log_messages (topic_id, partition, position, stored_at, key, value, headers)
            SELECT topic_id, partition, 1, now(), key, '1', headers FROM "{schema}".log_messages"""
        )
        assert len(await log.read_messages({("a", 0): 1}, limit=9)) == 0
        await transaction.commit()
        await writing

        rows = await log.read_messages({("a", 0): 1}, limit=9)
        assert [(row.offset, row.message.value) for row in rows] == [(1, b"1"), (2, b"2")]


async def test_a_log_that_was_made_anew_is_looked_at_again() -> None:
    """A restored one may know no topic, others by these numbers, or of another size: all goes where it belongs."""
    async with schema_stores() as (schema, stores), stores_on(schema, None) as others, connection() as other:
        assert stores.events is not None
        assert others.events is not None
        log, fresh = stores.events.log, others.events.log
        for partitions, topics in ((3, "ab"), (3, "ba"), (5, "ab")):
            await other.execute(RESTART.format(schema=schema))
            for topic in topics:
                await fresh.append_messages([message(topic, f"k{n}", 0) for n in range(9)], partitions=partitions)
            await log.append_messages([message(t, f"k{n}", 1) for t in "abc" for n in range(9)], partitions=partitions)

            both = {f"k{n}": [0, 1] for n in range(9)}
            assert [await read_all(log, topic, partitions) for topic in "ab"] == [both, both]
            assert await read_all(log, "c", partitions) == {f"k{n}": [1] for n in range(9)}


async def test_a_topic_whose_making_was_given_up_is_made_again() -> None:
    """The transaction that made it did not come to its end: what was seen in it is not so."""
    async with schema_stores() as (schema, stores), connection() as other:
        assert stores.events is not None
        log = stores.events.log
        await other.execute(REFUSE.format(schema=schema))
        with pytest.raises(HeadraceError):
            await log.append_messages([message("a", "k", 0)], partitions=1)
        await other.execute(ALLOW.format(schema=schema))
        await log.append_messages([message("a", "k", 1)], partitions=1)

        assert await read_all(log, "a", 1) == {"k": [1]}


async def test_who_lost_a_partition_while_it_commits_notes_nothing() -> None:
    """The commit waits for whoever takes the partition, and then finds its fence gone."""
    async with schema_stores() as (schema, stores), connection() as other:
        assert stores.events is not None
        log, member = stores.events.log, uuid4()
        await log.append_messages([message("a", "k", 0)], partitions=1)
        [share] = (await log.join_group("g", member, ["a"], lease=LEASE)).shares
        transaction = other.transaction()
        await transaction.start()
        await other.execute(TAKE_AWAY.format(schema=schema), uuid4())
        done = [Share("a", 0, share.generation, 1)]
        committing = asyncio.create_task(log.commit_offsets("g", member, done))
        await lock_waits(schema)
        await transaction.commit()

        assert await committing == []
        assert await log.log_backlog("g") == {("a", 0): 1}


async def test_who_takes_a_partition_begins_behind_the_last_commit() -> None:
    """Also when that commit ends while the other one takes the partition."""
    async with schema_stores() as (schema, stores), connection() as other:
        assert stores.events is not None
        log, first, second = stores.events.log, uuid4(), uuid4()
        await log.append_messages([message("a", "k", number) for number in range(5)], partitions=1)
        await log.join_group("g", first, ["a"], lease=LEASE)
        await other.execute(END_LEASES.format(schema=schema), first)
        transaction = other.transaction()
        await transaction.start()
        await other.execute(f'UPDATE "{schema}".log_shares SET position = 3')
        joining = asyncio.create_task(log.join_group("g", second, ["a"], lease=LEASE))
        await lock_waits(schema)
        await transaction.commit()

        assert (await joining).shares == (Share("a", 0, 2, 3),)


class Readers:
    """Members of a group over topics whose names begin with "t.", and what was seen of them."""

    def __init__(self, log: MessageLog, end_lease: Callable[[UUID], Awaitable[None]]) -> None:
        self.log, self._end_lease = log, end_lease
        self.committed: dict[Partition, int] = {}
        self._readers: dict[tuple[Partition, int], UUID] = {}

    async def join(self, member: UUID) -> Membership:
        """Join; nobody else had a share under its generation, and what was committed before is not read again."""
        before = dict(self.committed)
        joined = await self.log.join_group("g", member, ["t.*"], lease=LEASE)
        for share in joined.shares:
            place = (share.topic, share.partition)
            assert self._readers.setdefault((place, share.generation), member) == member
            assert share.offset >= before.get(place, 0)
        return joined

    async def live(self, seed: int) -> None:
        """Join again and again, read a little, and now and then go, or be taken for dead."""
        chance, member = random.Random(seed), uuid4()
        for _ in range(12):
            joined = await self.join(member)
            await self._read(member, joined.shares)
            await self.log.give_up("g", member, joined.surplus)
            if chance.random() < 0.2:
                await self.log.give_up("g", member)
            elif chance.random() < 0.2:
                await self._end_lease(member)
        await self.log.give_up("g", member)

    async def _read(self, member: UUID, shares: Sequence[Share]) -> None:
        for share in shares:
            rows = await self.log.read_messages({(share.topic, share.partition): share.offset}, limit=5)
            step = replace(share, offset=share.offset + len(rows))
            for place in await self.log.commit_offsets("g", member, [step]):
                self.committed[place] = max(self.committed.get(place, 0), step.offset)


async def test_members_that_come_and_go_read_on_where_it_was_left_and_never_two_at_once() -> None:
    """Eight members of a group join, read, commit, give up, lose their leases and leave, all at once."""
    before, places = deadlocks(), 12
    async with schema_stores(max_pool_size=20) as (schema, stores):
        assert stores.events is not None

        async def end_lease(member: UUID) -> None:
            async with connection() as other:
                await other.execute(END_LEASES.format(schema=schema), member)

        readers = Readers(stores.events.log, end_lease)
        messages = [message(topic, f"k{n}", n) for n in range(300) for topic in ("t.a", "t.b", "t.c")]
        await readers.log.append_messages(messages, partitions=places // 3)
        await asyncio.gather(*(readers.live(seed) for seed in range(8)))
        rest = (await readers.join(uuid4())).shares
    assert len(rest) == places
    found = {(share.topic, share.partition): share.offset for share in rest}
    assert found == {place: readers.committed.get(place, 0) for place in found}
    assert sum(found.values()) > 100
    assert deadlocks() == before


async def test_members_at_once_come_to_even_parts() -> None:
    """Whatever order they ask in; nobody waits for more than to be asked once more."""
    async with schema_stores(max_pool_size=20) as (_, stores):
        assert stores.events is not None
        log, members = stores.events.log, [uuid4() for _ in range(5)]
        await log.append_messages([message("a", "k", 0), message("b", "k", 0)], partitions=9)
        sizes: dict[UUID, int] = {}

        async def ask(member: UUID) -> None:
            joined = await log.join_group("g", member, ["a", "b"], lease=LEASE)
            await log.give_up("g", member, joined.surplus)
            sizes[member] = len(joined.shares) - len(joined.surplus)

        async def even() -> bool:
            await asyncio.gather(*(ask(member) for member in members))
            return sorted(sizes.values()) == [3, 3, 4, 4, 4]

        await wait_until(even)
