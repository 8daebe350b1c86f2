"""The log of messages in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from uuid import UUID

from headrace.model.errors import ConflictError
from headrace.model.event import Message
from headrace.model.message_log import (
    GroupView,
    Membership,
    Partition,
    Share,
    Stored,
    deal,
    partition_of,
    reads,
    still_read,
)
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
    async def read_messages(self, starts: Mapping[Partition, int], *, limit: int) -> list[Stored]:
        """Return messages of partitions, equal parts of those that have any."""
        lanes = {place: self._lane(place) for place in starts}
        waiting = [place for place, start in starts.items() if lanes[place].behind(start) > 0][:limit]
        each = limit // max(len(waiting), 1)
        return [
            Stored(place[1], number, message)
            for place in waiting
            for number, message in lanes[place].read(starts[place], each)
        ]

    def _lane(self, place: Partition) -> Lane:
        """Return a partition; one that does not exist is empty."""
        topic, number = place
        lanes = self._topics.get(topic, ())
        return lanes[number] if number < len(lanes) else Lane()

    @atomic
    async def join_group(self, group: str, member: UUID, topics: Sequence[str], *, lease: timedelta) -> Membership:
        """Join or stay, take what is free of a fair part, and tell what is more than that."""
        now = self._state.now()
        row = self._groups.setdefault(group, Group(now))
        row.expire(now)
        row.renew(member, Member(tuple(topics), now + lease))
        known = {topic: len(lanes) for topic, lanes in self._topics.items()}
        for topic in (topic for topic in known if reads(topics, topic)):
            for number, lane in enumerate(self._topics[topic]):
                place = row.places.setdefault((topic, number), Place(lane.first))
                place.offset = max(place.offset, lane.first)
        subscriptions = {key: live.topics for key, live in row.members.items()}
        taken, surplus = deal(subscriptions, member, known, row.holders())
        row.take(member, taken)
        return Membership(row.shares(member), tuple(surplus))

    @atomic
    async def commit_offsets(self, group: str, member: UUID, done: Sequence[Share]) -> list[Partition]:
        """Note how far a member is with what it reads under the generations it names."""
        row, still = self._groups.get(group), []
        if row is None or member not in row.live(self._state.now()):
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
        row = self._groups.get(group)
        if row is not None and places is None:
            row.leave(member, self._state.now())
        elif row is not None:
            row.give_up(member, places)
        self._notifier.hint(LOG)

    @atomic
    async def log_backlog(self, group: str) -> dict[Partition, int]:
        """Return what a group has not committed."""
        row = self._groups.get(group)
        return {} if row is None else self._behind(row)

    def _behind(self, row: Group) -> dict[Partition, int]:
        lanes = {(topic, number): self._topics[topic][number] for topic, number in row.places}
        return {name: lanes[name].behind(place.offset) for name, place in row.places.items()}

    @atomic
    async def log_groups(self) -> list[GroupView]:
        """Return the groups by name."""
        now = self._state.now()
        return [
            GroupView(name, len(row.live(now)), sum(self._behind(row).values()), min(row.live_until, now))
            for name, row in sorted(self._groups.items())
        ]

    @atomic
    async def forget_group(self, group: str) -> bool:
        """Forget a group in which nobody is."""
        row = self._groups.get(group)
        if row is not None and (live := len(row.live(self._state.now()))):
            raise ConflictError(still_read(group, live))
        return self._groups.pop(group, None) is not None

    @atomic
    async def prune_messages(self, *, older_than: timedelta, limit: int, term: LeaderTerm | None = None) -> int:
        """Remove old messages that no group has still to read; nothing under a term that is over.

        Groups that nobody has been in for as long are not waited for.
        """
        if term is not None and not leads(self._state, term):
            return 0
        until, removed = self._state.now() - older_than, 0
        waited_for = [group.places for group in self._groups.values() if group.live_until > until]
        for topic, lanes in self._topics.items():
            for number, lane in enumerate(lanes):
                offsets = [places[topic, number].offset for places in waited_for if (topic, number) in places]
                before = min(offsets, default=lane.end)
                removed += lane.drop(until=until, before=before, limit=limit - removed)
        return removed
