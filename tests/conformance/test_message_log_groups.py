"""MessageLog: members of a group share partitions fairly, one reads each at a time, and commits are fenced."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from headrace.model.message_log import Share
from tests.conformance.events import Events
from tests.conformance.log_groups import Group, members, places
from tests.conformance.scenario import SECOND, Scenario

LEASE = timedelta(seconds=10)


@pytest.fixture
def group(events: Events) -> Group:
    """Return a group of the backend's log."""
    return Group(events.log)


async def test_one_member_reads_all(group: Group) -> None:
    """From the first message on; staying changes nothing."""
    await group.topic("t", partitions=3)
    [member] = members(1)
    first = await group.join(member)

    assert places(first.shares) == [("t", 0), ("t", 1), ("t", 2)]
    assert ({share.offset for share in first.shares}, first.surplus) == ({0}, ())
    assert await group.join(member) == first


async def test_nobody_loses_a_partition_by_anothers_joining(group: Group) -> None:
    """It is asked to give up what is more than its part, and the other takes that once it is free, not before."""
    await group.topic("t", partitions=4)
    old, new = members(2)
    before = await group.join(old)
    assert (await group.join(new)).shares == ()

    asked = await group.join(old)
    assert (asked.shares, len(asked.surplus)) == (before.shares, 2)
    assert set(asked.surplus) <= set(places(before.shares))
    assert (await group.join(new)).shares == ()
    assert await group.commit(old, *before.shares) == places(before.shares)

    await group.log.give_up(group.name, old, asked.surplus)
    assert sorted(await group.has(new)) == sorted(asked.surplus)
    after = await group.join(old)
    assert (sorted(places(after.shares)), after.surplus) == (
        sorted(set(places(before.shares)) - set(asked.surplus)), ()
    )  # fmt: skip


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 10])
async def test_parts_are_fair(group: Group, count: int) -> None:
    """Each partition has one reader, and nobody has two more than another."""
    await group.topic("t")
    all_members = members(count)
    parts = await group.settle(all_members)

    assert sorted(place for part in parts.values() for place in part) == [("t", number) for number in range(8)]
    assert max(map(len, parts.values())) - min(map(len, parts.values())) <= 1


async def test_many_topics_of_one_partition_are_shared(group: Group) -> None:
    """Not all of them go to the first of the members."""
    await group.topic(*(f"t{number}" for number in range(6)), partitions=1)
    parts = await group.settle(members(3), "t*")

    assert sorted(map(len, parts.values())) == [2, 2, 2]


async def test_members_that_join_at_once_get_different_partitions(group: Group) -> None:
    """No partition has two readers, at no time, and in the end all are dealt."""
    await group.topic("t")
    all_members = members(6)
    for _ in range(5):
        found = await asyncio.gather(*(group.join(member) for member in all_members))
        held = [place for membership in found for place in places(membership.shares)]
        assert len(held) == len(set(held))
        await asyncio.gather(
            *(group.log.give_up(group.name, m, one.surplus) for m, one in zip(all_members, found, strict=True))
        )

    parts = [await group.has(member) for member in all_members]
    assert sorted(map(len, parts)) == [1, 1, 1, 1, 2, 2]


async def test_a_silent_member_loses_its_partitions(on: Scenario, group: Group) -> None:
    """Once its lease has ended and another joins; its commits are refused from then on."""
    await group.topic("t", partitions=2)
    dead, living = members(2)
    shares = (await group.join(dead, lease=LEASE)).shares
    on.clock.advance(LEASE - SECOND)
    assert (await group.join(living)).shares == ()
    on.clock.advance(SECOND)
    taken = (await group.join(living)).shares

    assert places(taken) == places(shares)
    assert await group.commit(dead, *shares) == []
    assert await group.commit(living, *taken) == places(taken)


async def test_a_member_whose_lease_ended_commits_nothing(on: Scenario, group: Group) -> None:
    """Even while nobody else has joined: who joins next begins where it was left in time."""
    await group.topic("t", partitions=1)
    late, next_one = members(2)
    [share] = (await group.join(late, lease=LEASE)).shares
    on.clock.advance(LEASE - SECOND)
    assert await group.commit(late, replace(share, offset=1)) == [("t", 0)]
    on.clock.advance(SECOND)

    assert await group.commit(late, replace(share, offset=2)) == []
    assert [share.offset for share in (await group.join(next_one)).shares] == [1]


async def test_staying_renews_the_lease(on: Scenario, group: Group) -> None:
    """Who calls again in time keeps what it has, under its generation."""
    await group.topic("t", partitions=2)
    loyal, other = members(2)
    before = await group.join(loyal, lease=LEASE)
    for _ in range(3):
        on.clock.advance(LEASE - SECOND)
        assert (await group.join(loyal, lease=LEASE)).shares == before.shares

    assert (await group.join(other)).shares == ()
    assert (await group.join(loyal, lease=LEASE)).shares == before.shares


async def test_who_takes_a_partition_goes_on_where_it_was_left(group: Group) -> None:
    """Under a new generation, even the same member again."""
    await group.topic("t", partitions=1)
    first, second = members(2)
    [share] = (await group.join(first)).shares
    assert await group.commit(first, replace(share, offset=5)) == [("t", 0)]
    await group.log.give_up(group.name, first)
    [taken] = (await group.join(second)).shares
    assert (taken.offset, taken.generation > share.generation) == (5, True)
    await group.log.give_up(group.name, second)

    [again] = (await group.join(first)).shares
    assert (again.offset, again.generation > taken.generation) == (5, True)


async def test_commits_are_fenced(group: Group) -> None:
    """Of another member, another generation, or a place that is not there nothing is noted; of the others it is."""
    await group.topic("t", partitions=2)
    owner, other = members(2)
    first, second = (await group.join(owner)).shares
    await group.join(other)
    assert await group.commit(other, replace(first, offset=3)) == []
    stale = replace(first, offset=3, generation=first.generation - 1)
    ahead = replace(first, offset=3, generation=first.generation + 1)
    nowhere = Share("none", 0, 1, 3)
    assert await group.commit(owner, stale, replace(second, offset=7), nowhere) == [("t", 1)]
    assert await group.commit(owner, ahead) == []
    assert await group.commit(owner) == []

    assert [share.offset for share in (await group.join(owner)).shares] == [0, 7]
    assert await Group(group.log, "unknown").commit(owner, first) == []


async def test_an_old_generation_commits_nothing(group: Group) -> None:
    """Also of the same member that has the partition again."""
    await group.topic("t", partitions=1)
    [member] = members(1)
    [old] = (await group.join(member)).shares
    await group.log.give_up(group.name, member)
    [new] = (await group.join(member)).shares

    assert await group.commit(member, replace(old, offset=9)) == []
    assert await group.commit(member, replace(new, offset=4)) == [("t", 0)]
    assert (await group.join(member)).shares == (replace(new, offset=4),)


async def test_who_leaves_counts_no_more(group: Group) -> None:
    """The others' parts grow at once; of what is not one's own nothing is given up."""
    await group.topic("t")
    staying, leaving = members(2)
    parts = await group.settle([staying, leaving])
    before = await group.join(staying)
    await group.log.give_up(group.name, leaving, parts[staying])
    assert await group.join(staying) == before
    await group.log.give_up(group.name, leaving)
    await group.log.give_up(group.name, leaving)
    await group.log.give_up("unknown", leaving)

    assert len(await group.has(staying)) == 8
