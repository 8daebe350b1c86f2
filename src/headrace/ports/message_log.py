"""The message log port: what a bus is made of where there is no broker.

Offsets of a partition are given out in the order of commits: who reads behind an offset misses nothing. A partition is
read by one member of a group at a time, under a lease and a generation, by the store's clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from headrace.model.event import Message
from headrace.model.message_log import GroupView, Membership, Partition, Share, Stored
from headrace.model.session import LeaderTerm


class MessageLog(Protocol):
    """Topics, their messages, and how far groups are. All methods raise StoreUnavailableError."""

    async def append_messages(self, messages: Sequence[Message], *, partitions: int) -> None:
        """Store messages in one transaction, in this order, and hint "log"; new topics get so many partitions."""
        ...

    async def read_messages(self, starts: Mapping[Partition, int], *, limit: int) -> list[Stored]:
        """Return at most `limit` messages of partitions, from an offset of each on, one partition behind the other.

        Those that have any get equal parts of the limit; where they are more than that, the first of them get one each.
        """
        ...

    async def join_group(self, group: str, member: UUID, topics: Sequence[str], *, lease: timedelta) -> Membership:
        """Join a group, or stay in it, for the time of the lease, and take a fair part of the partitions of `topics`.

        Members whose lease ended lose theirs. Nobody loses a partition by another's joining: it is asked to give up
        what is more than its part (`Membership.surplus`), and the other takes it once it is free. A topic that does
        not exist yet has no partitions. A new group begins at the first message.
        """
        ...

    async def commit_offsets(self, group: str, member: UUID, done: Sequence[Share]) -> list[Partition]:
        """Note how far a member is: `Share.offset` is the next to be read.

        Returns the partitions that are still its own, under that generation; nothing is noted of the others.
        """
        ...

    async def give_up(self, group: str, member: UUID, places: Sequence[Partition] | None = None) -> None:
        """Let others read partitions at once; None: all, and leave the group."""
        ...

    async def log_backlog(self, group: str) -> dict[Partition, int]:
        """Return how many messages of each partition a group has not committed yet."""
        ...

    async def log_groups(self) -> list[GroupView]:
        """Return the groups that are known, by name. A group has been seen up to the end of its last membership."""
        ...

    async def forget_group(self, group: str) -> bool:
        """Forget how far a group is: one that joins by its name later begins at the first message that is kept.

        Returns whether there was such a group. Raises ConflictError for one with live members.
        """
        ...

    async def prune_messages(self, *, older_than: timedelta, limit: int, term: LeaderTerm | None = None) -> int:
        """Remove up to `limit` messages that are older and that every group which reads their topic has committed.

        A group that has had no live member for as long holds nothing back. It is not forgotten: with a member again it
        goes on where it was, or at the first message that is kept.
        """
        ...
