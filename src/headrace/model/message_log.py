"""The log of messages that a store keeps, for a bus without a broker: topics of partitions, groups of members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from uuid import UUID

from headrace.model.event import Message

#: A place where messages are kept in order.
Partition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Stored:
    """A message at its place; offsets of a partition count from 0 without a gap."""

    partition: int
    offset: int
    message: Message


@dataclass(frozen=True, slots=True)
class Share:
    """A partition that a member of a group reads, from `offset` on. `generation` is the fence of its commits."""

    topic: str
    partition: int
    generation: int
    offset: int


@dataclass(frozen=True, slots=True)
class Membership:
    """What a member of a group has, and which of these it is asked to give up for others, once it is done with them."""

    shares: tuple[Share, ...]
    surplus: tuple[Partition, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group of the log: how many live members it has, what it has not committed, and when it last had a member."""

    name: str
    members: int
    backlog: int
    seen_at: datetime


def partition_of(key: str, partitions: int) -> int:
    """Return the partition of a key; the same for ever as long as their number is.

    >>> 0 <= partition_of("s-1", 8) < 8
    True
    """
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest()) % partitions


def reads(topics: Sequence[str], topic: str) -> bool:
    """Whether a topic is among those of a subscription, where a name that ends with "*" stands for all that begin so.

    >>> reads(["orders", "outbox.*"], "outbox.event.Order")
    True
    """
    return any(topic.startswith(name[:-1]) if name.endswith("*") else topic == name for name in topics)


def still_read(group: str, members: int) -> str:
    """Return why a group with live members is not forgotten."""
    count = "a live member" if members == 1 else f"{members} live members"
    return (
        f"the group {group} has {count}: stop what reads by this name, or wait until the lease is over, then forget it"
    )


def fair_part(members: Sequence[UUID], member: UUID, partitions: int) -> int:
    """Return how many of so many partitions a member may have: as many as any other, or one more.

    Those whose ids come first have one more, so that all members see the same parts and these add up.

    >>> [fair_part([UUID(int=1), UUID(int=2)], UUID(int=number), 7) for number in (1, 2)]
    [4, 3]
    """
    each, over = divmod(partitions, len(members))
    return each + (sorted(members).index(member) < over)


def deal(
    subscriptions: Mapping[UUID, Sequence[str]], member: UUID, topics: Mapping[str, int],
    holders: Mapping[Partition, UUID],
) -> tuple[list[Partition], list[Partition]]:  # fmt: skip
    """Return the free partitions that a member of a group takes, and those of its own that it is asked to give up.

    `subscriptions`: the topics of each live member; `topics`: all that exist, and how many partitions they have;
    `holders`: who reads a partition, live members only. Partitions of topics that the same members read are dealt
    together: else the first of the members would have all topics of one partition.
    """
    taken: list[Partition] = []
    surplus: list[Partition] = []
    for readers, places in _places_by_readers(subscriptions, topics).items():
        if member not in readers:
            continue
        part = fair_part(readers, member, len(places))
        own = [place for place in places if holders.get(place) == member]
        free = [place for place in places if place not in holders]
        taken += free[: max(0, part - len(own))]
        surplus += own[part:]
    unread = [
        place for place, holder in holders.items() if holder == member and not reads(subscriptions[member], place[0])
    ]
    return taken, surplus + sorted(unread)


def _places_by_readers(
    subscriptions: Mapping[UUID, Sequence[str]], topics: Mapping[str, int]
) -> dict[tuple[UUID, ...], list[Partition]]:
    """Return the partitions by who may read them, the first partitions of all topics first."""
    found: dict[tuple[UUID, ...], list[Partition]] = {}
    for topic, partitions in sorted(topics.items()):
        readers = tuple(sorted(member for member, names in subscriptions.items() if reads(names, topic)))
        found.setdefault(readers, []).extend((topic, number) for number in range(partitions))
    return {readers: sorted(places, key=lambda place: (place[1], place[0])) for readers, places in found.items()}
