"""The log of messages in memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from headrace.model.event import Message
from headrace.model.message_log import Membership, Partition, Share, Stored, deal, partition_of, reads
from headrace.model.session import LeaderTerm
from headrace.ports.notifier import Notifier
from headrace.stores.memory.leadership import leads
from headrace.stores.memory.log_rows import Group, Lane, Member, Place
from headrace.stores.memory.state import State, atomic

#: The topic of hints that there are new messages.
LOG = "log"


class MemoryMessageLog:
    """`ports.message_log.MessageLog` over dicts; the port says what each verb promises."""

    def __init__(self, state: State, notifier: Notifier) -> None:
        self._state, self._notifier = state, notifier
        self._topics: dict[str, list[Lane]] = {}
        self._groups: dict[str, Group] = {}

    @atomic
    async def append_messages(self, messages: Sequence[Message], *, partitions: int) -> None:
        """Store messages behind all others of their partitions."""
        now = self._state.now()
        for message in messages:
            lanes = self._topics.setdefault(message.topic, [])
            if not lanes:
                lanes.extend(Lane() for _ in range(partitions))
            lanes[partition_of(message.key, len(lanes))].kept.append((now, message))
        if messages:
            self._notifier.hint(LOG)

    @atomic
    async def read_messages(self, place: Partition, *, offset: int, limit: int) -> list[Stored]:
        """Return messages of a partition."""
        topic, partition = place
        lanes = self._topics.get(topic, [])
        found = lanes[partition].read(offset, limit) if partition < len(lanes) else []
        return [Stored(partition, number, message) for number, message in found]

    @atomic
    async def join_group(self, group: str, member: UUID, topics: Sequence[str], *, lease: timedelta) -> Membership:
        """Join or stay, take what is free of a fair part, and tell what is more than that."""
        row, now = self._groups.setdefault(group, Group()), self._state.now()
        row.expire(now)
        row.members[member] = Member(tuple(topics), now + lease)
        known = {topic: len(lanes) for topic, lanes in self._topics.items()}
        for topic in (topic for topic in known if reads(topics, topic)):
            for number, lane in enumerate(self._topics[topic]):
                row.places.setdefault((topic, number), Place(lane.first))
        subscriptions = {key: live.topics for key, live in row.members.items()}
        taken, surplus = deal(subscriptions, member, known, row.holders())
        row.take(member, taken)
        return Membership(row.shares(member), tuple(surplus))

    @atomic
    async def commit_offsets(self, group: str, member: UUID, done: Sequence[Share]) -> list[Partition]:
        """Note how far a member is with what it reads under the generations it names."""
        row, still = self._groups.get(group, Group()), []
        if member not in row.members or row.members[member].expires_at <= self._state.now():
            return []
        for share in done:
            place = row.places.get((share.topic, share.partition))
            if place is not None and (place.holder, place.generation) == (member, share.generation):
                place.offset = max(place.offset, share.offset)
                still.append((share.topic, share.partition))
        return still

    @atomic
    async def give_up(self, group: str, member: UUID, places: Sequence[Partition] | None = None) -> None:
        """Free partitions; a hint tells the others."""
        if group in self._groups:
            self._groups[group].give_up(member, places)
        self._notifier.hint(LOG)

    @atomic
    async def log_backlog(self, group: str) -> dict[Partition, int]:
        """Return what a group has not committed."""
        places = self._groups.get(group, Group()).places
        return {name: self._topics[name[0]][name[1]].end - place.offset for name, place in places.items()}

    @atomic
    async def prune_messages(self, *, older_than: timedelta, limit: int, term: LeaderTerm | None = None) -> int:
        """Remove old messages that no group has still to read; nothing under a term that is over."""
        if term is not None and not leads(self._state, term):
            return 0
        until, removed = self._state.now() - older_than, 0
        for topic, lanes in self._topics.items():
            for number, lane in enumerate(lanes):
                before = min((group.places[topic, number].offset for group in self._groups.values()
                              if (topic, number) in group.places), default=lane.end)  # fmt: skip
                removed += lane.drop(until=until, before=before, limit=limit - removed)
        return removed
