"""The tables of the log of messages in memory: partitions, and the groups that read them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from uuid import UUID

from headrace.model.event import Message
from headrace.model.message_log import Partition, Share


@dataclass(slots=True)
class Lane:
    """The messages of one partition with the time they came; `first` is the offset of the first one still there."""

    first: int = 0
    kept: deque[tuple[datetime, Message]] = field(default_factory=deque)

    @property
    def end(self) -> int:
        """The offset of the next message."""
        return self.first + len(self.kept)

    def behind(self, offset: int) -> int:
        """Return how many messages there are from an offset on."""
        return self.end - max(offset, self.first)

    def read(self, offset: int, limit: int) -> list[tuple[int, Message]]:
        """Return messages from an offset on."""
        start = max(0, offset - self.first)
        chosen = islice(self.kept, start, start + limit)
        return [(self.first + start + number, message) for number, (_, message) in enumerate(chosen)]

    def drop(self, *, until: datetime, before: int, limit: int) -> int:
        """Remove up to `limit` messages that came by `until` and lie before an offset; return how many."""
        removed = 0
        while removed < limit and self.first < before and self.kept and self.kept[0][0] <= until:
            self.kept.popleft()
            self.first += 1
            removed += 1
        return removed


@dataclass(slots=True)
class Member:
    """A member of a group."""

    topics: tuple[str, ...]
    expires_at: datetime


@dataclass(slots=True)
class Place:
    """How far a group is in a partition, and who reads it."""

    offset: int
    generation: int = 0
    holder: UUID | None = None


@dataclass(slots=True)
class Group:
    """A group: its members, and every partition of the topics that it reads or ever read.

    `live_until` is when the last membership ends, or ended.
    """

    live_until: datetime
    members: dict[UUID, Member] = field(default_factory=dict)
    places: dict[Partition, Place] = field(default_factory=dict)

    def expire(self, now: datetime) -> None:
        """Take what they have from the members whose lease ended."""
        for member in [member for member, row in self.members.items() if row.expires_at <= now]:
            self.give_up(member, None)

    def renew(self, member: UUID, row: Member) -> None:
        """Let a member stay, or join."""
        self.members[member] = row
        self.live_until = max(self.live_until, row.expires_at)

    def leave(self, member: UUID, now: datetime) -> None:
        """Let a member go with all it has."""
        if member in self.members:
            self.give_up(member, None)
            last = max((row.expires_at for row in self.members.values()), default=now)
            self.live_until = min(self.live_until, max(last, now))

    def live(self, now: datetime) -> list[UUID]:
        """Return the members whose lease has not ended."""
        return [member for member, row in self.members.items() if row.expires_at > now]

    def give_up(self, member: UUID, places: Sequence[Partition] | None) -> None:
        """Free partitions of a member; None: all, and it is one no more."""
        for name, place in self.places.items():
            if place.holder == member and (places is None or name in places):
                place.holder = None
        if places is None:
            self.members.pop(member, None)

    def take(self, member: UUID, places: Sequence[Partition]) -> None:
        """Let a member read partitions, under a new generation each."""
        for name in places:
            place = self.places[name]
            place.holder, place.generation = member, place.generation + 1

    def holders(self) -> dict[Partition, UUID]:
        """Return who reads what."""
        return {name: place.holder for name, place in self.places.items() if place.holder is not None}

    def shares(self, member: UUID) -> tuple[Share, ...]:
        """Return what a member reads, and from where."""
        own = sorted((name, place) for name, place in self.places.items() if place.holder == member)
        return tuple(Share(*name, place.generation, place.offset) for name, place in own)
