"""What tests of groups of the message log do again and again: make topics, join, commit, give up."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID, uuid4

from headrace.model.event import Message
from headrace.model.message_log import Membership, Partition, Share
from headrace.ports.message_log import MessageLog
from tests.conformance.scenario import DAY


class Group:
    """A group of the log, and short words for what its members do."""

    def __init__(self, log: MessageLog, name: str = "g") -> None:
        self.log, self.name = log, name

    async def topic(self, *names: str, partitions: int = 8) -> None:
        """Make topics with one message each."""
        await self.log.append_messages([Message(name, "k", b"") for name in names], partitions=partitions)

    async def join(self, member: UUID, *topics: str, lease: timedelta = DAY) -> Membership:
        """Join or stay; the answer is sorted."""
        found = await self.log.join_group(self.name, member, topics or ["t"], lease=lease)
        return Membership(tuple(sorted(found.shares, key=place)), tuple(sorted(found.surplus)))

    async def has(self, member: UUID, *topics: str) -> list[Partition]:
        """Join or stay, and return what the member reads."""
        return places((await self.join(member, *topics)).shares)

    async def commit(self, member: UUID, *shares: Share) -> list[Partition]:
        """Commit offsets; the answer is sorted."""
        return sorted(await self.log.commit_offsets(self.name, member, shares))

    async def settle(self, members: Sequence[UUID], *topics: str) -> dict[UUID, list[Partition]]:
        """Let all join and give up what they are asked for, until nobody is asked for more; return what each has."""
        for _ in range(4):
            for member in members:
                asked = (await self.join(member, *topics)).surplus
                await self.log.give_up(self.name, member, asked)
        return {member: await self.has(member, *topics) for member in members}


def place(share: Share) -> Partition:
    """Return the partition of a share."""
    return share.topic, share.partition


def places(shares: Sequence[Share]) -> list[Partition]:
    """Return the partitions of shares."""
    return [place(share) for share in shares]


def members(count: int) -> list[UUID]:
    """Return members in the order of their ids."""
    return sorted(uuid4() for _ in range(count))
