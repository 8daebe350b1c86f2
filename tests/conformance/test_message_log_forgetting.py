"""MessageLog: a group that nobody is in any more holds messages back for a time, and is forgotten when told so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.model.errors import ConflictError
from headrace.model.message_log import GroupView, partition_of
from tests.conformance.events import Events
from tests.conformance.log_groups import Group, members, place
from tests.conformance.scenario import DAY, SECOND, Scenario

KEPT = 30 * DAY
LEASE = 10 * SECOND
ALL = 100


@pytest.fixture
def group(events: Events) -> Group:
    """Return a group of the backend's log."""
    return Group(events.log)


async def pruned(group: Group) -> int:
    """Remove what is old enough, and return how much that was."""
    return await group.log.prune_messages(older_than=KEPT, limit=ALL)


async def the_only(group: Group) -> GroupView:
    """Return the only group of the log."""
    [found] = await group.log.log_groups()
    return found


@pytest.mark.parametrize("leaves", [True, False])
async def test_a_group_that_is_no_more_holds_nothing_back(on: Scenario, group: Group, *, leaves: bool) -> None:
    """Not before its last member is gone for the time that messages are kept: by its word, or by its lease."""
    [member] = members(1)
    await group.topic("t", partitions=1)
    await group.join(member, lease=LEASE)
    on.clock.advance(SECOND)
    if leaves:
        await group.log.give_up(group.name, member)
    on.clock.advance(KEPT - SECOND if leaves else KEPT + LEASE - 2 * SECOND)

    assert await pruned(group) == 0
    on.clock.advance(SECOND)
    assert await pruned(group) == 1


async def test_a_group_with_a_live_member_holds_back_what_it_has_not_committed(on: Scenario, group: Group) -> None:
    """However long its membership lasts without a word, and whoever else left it since."""
    [staying, leaving] = members(2)
    await group.topic("t", partitions=1)
    await group.join(staying, lease=3 * KEPT)
    await group.join(leaving, lease=LEASE)
    await group.log.give_up(group.name, leaving)
    on.clock.advance(3 * KEPT - SECOND)

    assert (await pruned(group), (await the_only(group)).members) == (0, 1)


async def test_a_group_that_comes_back_goes_on_at_the_first_message_that_is_kept(on: Scenario, group: Group) -> None:
    """Of others that were behind nothing is lost; what it had committed stays so."""
    [member] = members(1)
    await group.topic("t", "t", "t", partitions=1)
    [share] = (await group.join(member, lease=LEASE)).shares
    await group.commit(member, replace(share, offset=1))
    on.clock.advance(KEPT + LEASE)
    await group.topic("t")
    assert await pruned(group) == 3
    assert await group.log.log_backlog(group.name) == {("t", 0): 1}
    [again] = (await group.join(member, lease=LEASE)).shares
    found = await group.log.read_messages({("t", 0): again.offset}, limit=ALL)

    assert (again.offset, [one.offset for one in found]) == (3, [3])
    on.clock.advance(KEPT - SECOND)
    assert await pruned(group) == 0


async def test_groups_are_listed_with_who_is_in_them(on: Scenario, group: Group) -> None:
    """By name, with what they have not committed and when they last had a member."""
    other = Group(group.log, "a")
    assert await group.log.log_groups() == []
    one, two, late = members(3)
    await group.topic("t", "u", "t", partitions=2)
    began = on.clock.now()
    shares, done = (await group.join(one, "t", "u")).shares, ("u", partition_of("k", 2))
    await group.join(two, "t", "u")
    await group.commit(one, *(replace(share, offset=1) for share in shares if place(share) == done))
    await other.join(late, "u", lease=LEASE)
    assert await group.log.log_groups() == [GroupView("a", 1, 1, began), GroupView("g", 2, 2, began)]

    on.clock.advance(2 * LEASE)
    await group.log.give_up("g", one)
    assert await group.log.log_groups() == [
        GroupView("a", 0, 1, began + LEASE), GroupView("g", 1, 2, began + 2 * LEASE),
    ]  # fmt: skip
    await group.log.give_up("g", two)
    await group.log.give_up("a", late)
    on.clock.advance(LEASE)
    assert [one.seen_at for one in await group.log.log_groups()] == [began + LEASE, began + 2 * LEASE]


async def test_a_group_is_forgotten(on: Scenario, group: Group) -> None:
    """Once: nothing waits for it from then on, and it begins anew if it comes again. The other groups stay."""
    [member, other] = members(2)
    await group.topic("t", "t", partitions=1)
    [share] = (await group.join(member)).shares
    await group.commit(member, replace(share, offset=1))
    await Group(group.log, "other").join(other)
    await group.log.give_up(group.name, member)

    assert [await group.log.forget_group(group.name) for _ in range(2)] == [True, False]
    assert [one.name for one in await group.log.log_groups()] == ["other"]
    assert await group.log.log_backlog(group.name) == {}
    assert await group.commit(member, replace(share, offset=2)) == []
    assert [share.offset for share in (await group.join(member)).shares] == [0]
    assert await group.log.log_backlog("other") == {("t", 0): 2}


async def test_a_forgotten_group_holds_nothing_back(on: Scenario, group: Group) -> None:
    """At once, although it had a member a moment ago."""
    [member] = members(1)
    await group.topic("t", partitions=1)
    on.clock.advance(KEPT)
    await group.join(member, lease=LEASE)
    on.clock.advance(LEASE)
    assert await pruned(group) == 0

    assert await group.log.forget_group(group.name)
    assert await pruned(group) == 1


async def test_a_group_with_live_members_is_not_forgotten(on: Scenario, group: Group) -> None:
    """It says how many there are; once their leases are over it may be, also while nobody noticed that yet."""
    await group.topic("t", partitions=1)
    [one, two] = members(2)
    await group.join(one, lease=2 * LEASE)
    await group.join(two, lease=LEASE)
    with pytest.raises(ConflictError, match="g has 2 live members"):
        await group.log.forget_group(group.name)
    on.clock.advance(LEASE)
    with pytest.raises(ConflictError, match="g has a live member"):
        await group.log.forget_group(group.name)
    assert (await the_only(group)).backlog == 1
    on.clock.advance(LEASE)

    assert await group.log.forget_group(group.name)


async def test_a_group_that_nobody_knows_is_not_forgotten(group: Group) -> None:
    """Nor made by asking for it."""
    await group.log.give_up("none", members(1)[0])
    assert not await group.log.forget_group("none")
    assert await group.log.log_groups() == []
