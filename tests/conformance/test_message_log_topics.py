"""MessageLog: what a group reads: topics by name or by how they begin, each group for itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.model.message_log import Membership, partition_of
from tests.conformance.events import Events
from tests.conformance.log_groups import Group, members, places


@pytest.fixture
def group(events: Events) -> Group:
    """Return a group of the backend's log."""
    return Group(events.log)


async def test_a_topic_appears_later(group: Group) -> None:
    """Until then it has no partitions; the next call gets them, from the first message on."""
    [member] = members(1)
    assert await group.join(member, "t", "u*") == Membership(())
    await group.topic("t", "u1", "v", partitions=1)

    shares = (await group.join(member, "t", "u*")).shares
    assert (places(shares), [share.offset for share in shares]) == ([("t", 0), ("u1", 0)], [0, 0])


async def test_a_star_stands_for_all_that_begin_so(group: Group) -> None:
    """And for nothing else: dots, underscores and percent signs are themselves."""
    await group.topic("a.b", "a.b.c", "axb", "a_b", "aab", partitions=1)
    [member] = members(1)

    for name, wanted in (("a.*", ["a.b", "a.b.c"]), ("a_*", ["a_b"]), ("a.b", ["a.b"]), ("a%*", []), ("z*", [])):
        assert await Group(group.log, name).has(member, name) == [(topic, 0) for topic in wanted]


async def test_members_of_other_topics_do_not_count(group: Group) -> None:
    """Each topic is shared by those who read it."""
    await group.topic("t", "u", partitions=4)
    both, one = members(2)
    await group.settle([both], "t", "u")
    for _ in range(3):
        await group.log.give_up(group.name, both, (await group.join(both, "t", "u")).surplus)
        await group.join(one, "u")

    mine, theirs = await group.has(both, "t", "u"), await group.has(one, "u")
    assert [number for topic, number in mine if topic == "t"] == [0, 1, 2, 3]
    assert len([place for place in mine if place[0] == "u"]) == len(theirs) == 2


async def test_groups_read_for_themselves(group: Group) -> None:
    """Each has all partitions and its own offsets."""
    await group.topic("t", partitions=1)
    [member] = members(1)
    other = Group(group.log, "other")
    [share] = (await group.join(member)).shares
    await group.commit(member, replace(share, offset=1))

    [theirs] = (await other.join(member)).shares
    assert theirs.offset == 0
    assert await group.log.log_backlog("g") == {("t", 0): 0}
    assert await group.log.log_backlog("other") == {("t", 0): 1}


async def test_the_backlog_is_what_is_not_committed(group: Group) -> None:
    """Of each partition of the topics that the group reads, whoever holds it, or nobody."""
    lane = partition_of("k", 2)
    await group.topic("t", "t", "t", "elsewhere", partitions=2)
    assert await group.log.log_backlog("g") == {}
    [member] = members(1)
    shares = (await group.join(member)).shares
    assert await group.log.log_backlog("g") == {("t", lane): 3, ("t", 1 - lane): 0}

    await group.commit(member, replace(shares[lane], offset=2))
    await group.log.give_up(group.name, member)
    await group.topic("t")
    assert await group.log.log_backlog("g") == {("t", lane): 2, ("t", 1 - lane): 0}
