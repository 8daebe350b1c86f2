"""The arithmetic of groups: parts that add up, and nobody who has more than its part once all was given up."""

from __future__ import annotations

import random
from uuid import UUID

import pytest

from headrace.model.message_log import Partition, deal, fair_part, reads

MEMBERS = [UUID(int=number) for number in range(1, 6)]


@pytest.mark.parametrize(
    ("names", "topic", "expected"),
    [
        (["a"], "a", True),
        (["a"], "ab", False),
        (["a*"], "a", True),
        (["a*"], "ab", True),
        (["a*"], "b", False),
        (["*"], "anything", True),
        (["b", "a.*"], "a.b", True),
        (["a_*"], "axb", False),
        (["a%*"], "ab", False),
        ([], "a", False),
    ],
)
def test_names_of_subscriptions(names: list[str], topic: str, *, expected: bool) -> None:
    """A star at the end stands for whatever follows; nothing else stands for anything."""
    assert reads(names, topic) is expected


@pytest.mark.parametrize("partitions", [0, 1, 4, 5, 7, 100])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_parts_add_up(count: int, partitions: int) -> None:
    """To all partitions, and none is larger than another by more than one, in whatever order members are named."""
    members = MEMBERS[:count]
    parts = [fair_part(members, member, partitions) for member in members]
    turned = [fair_part(members[::-1], member, partitions) for member in members]

    assert sum(parts) == partitions
    assert max(parts) - min(parts) <= 1
    assert turned == parts


def test_topics_of_one_partition_are_shared_out() -> None:
    """They are dealt together, so that the first member does not get all of them."""
    subscriptions = {member: ["t*"] for member in MEMBERS[:2]}
    topics = {f"t{number}": 1 for number in range(6)}
    taken, surplus = deal(subscriptions, MEMBERS[0], topics, {})

    assert (len(taken), surplus) == (3, [])


def test_what_a_member_reads_no_more_is_surplus() -> None:
    """Whoever asks for other topics than before gives up those it had."""
    assert deal({MEMBERS[0]: ["b"]}, MEMBERS[0], {"b": 1}, {("a", 0): MEMBERS[0]}) == ([("b", 0)], [("a", 0)])


@pytest.mark.parametrize("seed", range(30))
def test_groups_come_to_rest(seed: int) -> None:
    """Whoever joins, goes and asks again: then all partitions are read, by those who read the topic, evenly."""
    chance = random.Random(seed)
    topics = {f"{kind}{number}": chance.randint(1, 5) for kind in "ab" for number in range(3)}
    choices = [["a*"], ["b*"], ["*"], ["a0", "b1"]]
    subscriptions: dict[UUID, list[str]] = {MEMBERS[0]: ["*"]}
    holders: dict[Partition, UUID] = {}
    for _ in range(20):
        member = chance.choice(MEMBERS[1:])
        if subscriptions.pop(member, None) is None:
            subscriptions[member] = chance.choice(choices)
        holders = {place: holder for place, holder in holders.items() if holder in subscriptions}
        ask(subscriptions, chance.choice(sorted(subscriptions)), topics, holders)
    for _ in range(2):
        for member in subscriptions:
            ask(subscriptions, member, topics, holders)

    assert set(holders) == {(topic, number) for topic, count in topics.items() for number in range(count)}
    for member in subscriptions:
        assert deal(subscriptions, member, topics, holders) == ([], [])
    assert all(reads(subscriptions[holder], topic) for (topic, _), holder in holders.items())


def ask(
    subscriptions: dict[UUID, list[str]], member: UUID, topics: dict[str, int], holders: dict[Partition, UUID]
) -> None:
    """Let a member take what it gets and give up what it is asked for."""
    taken, surplus = deal(subscriptions, member, topics, holders)
    assert not set(taken) & set(holders)
    holders.update(dict.fromkeys(taken, member))
    for place in surplus:
        del holders[place]
