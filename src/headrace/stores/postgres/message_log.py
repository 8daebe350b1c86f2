"""The message log port on PostgreSQL: a bus without a broker."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from headrace.model.errors import ConflictError, StoreUnavailableError
from headrace.model.event import Message
from headrace.model.message_log import GroupView, Membership, Partition, Share, Stored, deal, partition_of, still_read
from headrace.model.session import LeaderTerm
from headrace.stores.postgres.database import Database, Row, Transaction
from headrace.stores.postgres.notifier import PostgresNotifier
from headrace.stores.postgres.terms import fetch_under

#: About so many bytes of messages go with one statement.
BYTES_PER_STATEMENT = 32 * 1024 * 1024
_TORN = (
    "Topics of the message log have other partitions than they say. Restore the tables log_topics and log_partitions "
    "together, from one backup."
)


class PostgresMessageLog:
    """`ports.message_log.MessageLog`.

    Locks: topics by name where they are made, then partitions by topic and number. Members of a group take turns; what
    they commit and give up locks shares by topic and number, and so does who takes them.
    """

    def __init__(self, database: Database, notifier: PostgresNotifier) -> None:
        self._database, self._notifier = database, notifier
        #: The number of partitions of topics that were seen: as long as there is a log nothing changes it.
        self._known: dict[str, int] = {}

    async def append_messages(self, messages: Sequence[Message], *, partitions: int) -> None:
        """Store messages in one transaction, in this order, and hint; new topics get so many partitions.

        Rows of partitions are locked from giving out offsets to the commit, always in the same order. So the offsets of
        a partition become visible in their order, and who asks for those behind the last it saw misses nothing.
        """
        if messages:
            append = partial(_append, messages=messages, partitions=partitions, known=self._known)
            if not await self._database.run(append):
                # Of a database that was restored, or their making was given up: they are looked at before any lock.
                self._known.clear()
                if not await self._database.run(append):
                    raise StoreUnavailableError(_TORN)
            self._notifier.hint("log")

    async def read_messages(self, starts: Mapping[Partition, int], *, limit: int) -> list[Stored]:
        """Return messages of partitions from an offset of each on, equal parts of those that have any."""
        topics, partitions = _columns(list(starts), 2)
        rows = await self._database.fetch(
            "read_messages", topics=topics, partitions=partitions, positions=list(starts.values()), limit=limit
        )
        return [Stored(row["partition"], row["position"], _message(row)) for row in rows]

    async def join_group(self, group: str, member: UUID, topics: Sequence[str], *, lease: timedelta) -> Membership:
        """Join a group or stay in it, and take a fair part of the partitions that are free."""
        return await self._database.run(partial(_join, group=group, member=member, topics=topics, lease=lease))

    async def commit_offsets(self, group: str, member: UUID, done: Sequence[Share]) -> list[Partition]:
        """Note how far a member is; return the partitions that are still its own."""
        rows = await self._database.fetch(
            "commit_offsets", name=group, member=member, topics=[share.topic for share in done],
            partitions=[share.partition for share in done], generations=[share.generation for share in done],
            positions=[share.offset for share in done],
        )  # fmt: skip
        return [(row["topic"], row["partition"]) for row in rows]

    async def give_up(self, group: str, member: UUID, places: Sequence[Partition] | None = None) -> None:
        """Let others read partitions at once; None: all, and leave the group. A hint tells them.

        Who leaves takes turns with those that join: its own join, given up half way, has ended by then.
        """

        async def work(tx: Transaction) -> None:
            if places is None:
                await tx.fetch("lock_group", name=group)
            topics = None if places is None else [topic for topic, _ in places]
            numbers = [number for _, number in places or ()]
            await tx.fetch("give_up_shares", name=group, member=member, topics=topics, partitions=numbers)
            if places is None:
                await tx.fetch("leave_group", name=group, member=member)

        await self._database.run(work)
        self._notifier.hint("log")

    async def log_backlog(self, group: str) -> dict[Partition, int]:
        """Return how many messages of each partition a group has not committed yet."""
        rows = await self._database.fetch("log_backlog", name=group)
        return {(row["topic"], row["partition"]): row["waiting"] for row in rows}

    async def log_groups(self) -> list[GroupView]:
        """Return the groups that are known, by name."""
        rows = await self._database.fetch("list_log_groups")
        return [GroupView(row["name"], row["members"], row["backlog"], row["seen_at"]) for row in rows]

    async def forget_group(self, group: str) -> bool:
        """Forget a group in which nobody is. Raises ConflictError for one with live members."""

        async def work(tx: Transaction) -> bool:
            await tx.fetch("lock_group", name=group)
            await tx.fetch("drop_log_members", name=group)
            if live := await tx.fetch("list_log_members", name=group):
                raise ConflictError(still_read(group, len(live)))
            await tx.fetch("forget_log_shares", name=group)
            return bool(await tx.fetch("forget_log_group", name=group))

        return await self._database.run(work)

    async def prune_messages(self, *, older_than: timedelta, limit: int, term: LeaderTerm | None = None) -> int:
        """Remove up to `limit` messages that are older and that no group has still to read.

        Groups that nobody has been in for as long are not waited for.
        """
        return len(await fetch_under(self._database, term, "prune_messages", retention=older_than, limit=limit))


async def _append(tx: Transaction, *, messages: Sequence[Message], partitions: int, known: dict[str, int]) -> bool:
    """Store messages; False, and nothing is stored, if topics are not what they are known as: the log was made anew."""
    topics = await _known_topics(tx, {message.topic for message in messages}, partitions, known)
    places = [(message.topic, partition_of(message.key, topics[message.topic])) for message in messages]
    held = await _lock(tx, set(places))
    if any(place not in held or held[place]["partitions"] != topics[place[0]] for place in places):
        return False
    known.update(topics)
    await _insert(tx, messages, [held[place] for place in places])
    return True


async def _known_topics(tx: Transaction, names: set[str], partitions: int, known: dict[str, int]) -> dict[str, int]:
    """Return how many partitions topics have; those that are missing are made, or waited for while others make them."""
    topics = {name: known[name] for name in names & known.keys()}
    topics |= await _found(tx, names - topics.keys())
    if missing := names - topics.keys():
        await tx.fetch("make_log_topics", names=list(missing), partitions=partitions)
        topics |= await _found(tx, missing)
    return topics


async def _found(tx: Transaction, names: set[str]) -> dict[str, int]:
    rows = await tx.fetch("list_log_topics", names=list(names), prefixes=[]) if names else []
    return {row["name"]: row["partitions"] for row in rows}


async def _lock(tx: Transaction, places: set[Partition]) -> dict[Partition, Row]:
    """Lock partitions to the end of the transaction; return their rows, with their next offsets."""
    topics, numbers = _columns(list(places), 2)
    rows = await tx.fetch("lock_log_partitions", topics=topics, numbers=numbers)
    return {(row["topic"], row["partition"]): row for row in rows}


async def _insert(tx: Transaction, messages: Sequence[Message], lanes: Sequence[Row]) -> None:
    """Insert messages, each behind the last of its partition, which is locked."""
    nexts = {(lane["topic_id"], lane["partition"]): lane["next"] for lane in lanes}
    rows = []
    for message, lane in zip(messages, lanes, strict=True):
        place = (lane["topic_id"], lane["partition"])
        rows.append((*place, nexts[place], message.key.encode(), message.value, json.dumps(message.headers)))
        nexts[place] += 1
    moved = dict(zip(("moved_topics", "moved_partitions"), _columns(list(nexts), 2), strict=True))
    for some in _slices(rows):
        names = ("topic_ids", "partitions", "positions", "keys", "values", "headers")
        values = dict(zip(names, _columns(some, len(names)), strict=True))
        await tx.fetch("append_messages", **values, **moved, nexts=list(nexts.values()))


def _columns(rows: Sequence[tuple[Any, ...]], count: int) -> list[list[Any]]:
    return [[row[number] for row in rows] for number in range(count)]


def _slices(rows: Sequence[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    """Yield rows in their order, about as many bytes at once as one statement carries."""
    some: list[tuple[Any, ...]] = []
    size = 0
    for row in rows:
        length = len(row[4] or b"")
        if some and size + length > BYTES_PER_STATEMENT:
            yield some
            some, size = [], 0
        some.append(row)
        size += length
    yield some


def _message(row: Row) -> Message:
    headers = tuple((name, value) for name, value in json.loads(row["headers"]))
    return Message(row["topic"], row["key"].decode(), row["value"], headers)


async def _join(tx: Transaction, *, group: str, member: UUID, topics: Sequence[str], lease: timedelta) -> Membership:
    who = {"name": group, "member": member}
    await tx.fetch("lock_group", name=group)
    await tx.fetch("drop_log_members", name=group)
    await tx.fetch("renew_log_member", **who, topics=list(topics), lease=lease)
    members = {row["member"]: row["topics"] for row in await tx.fetch("list_log_members", name=group)}
    known = await _subscribed(tx, topics)
    shares = await _shares(tx, who, known)
    holders = {(row["topic"], row["partition"]): row["member"] for row in shares if row["member"] is not None}
    taken, surplus = deal(members, member, {row["name"]: row["partitions"] for row in known}, holders)
    own = [_share(row["topic"], row) for row in shares if row["member"] == member]
    own += await _take(tx, who, taken, {row["name"]: row["id"] for row in known})
    return Membership(tuple(own), tuple(surplus))


async def _subscribed(tx: Transaction, topics: Sequence[str]) -> list[Row]:
    """Return the topics of a subscription that exist."""
    names = [topic for topic in topics if not topic.endswith("*")]
    prefixes = [topic[:-1] for topic in topics if topic.endswith("*")]
    return await tx.fetch("list_log_topics", names=names, prefixes=prefixes)


async def _shares(tx: Transaction, who: dict[str, Any], topics: Sequence[Row]) -> list[Row]:
    """Return the shares of a group in topics, and what else a member has; those of new topics are made."""
    ids = [row["id"] for row in topics]
    shares = await tx.fetch("list_log_shares", **who, topic_ids=ids)
    if sum(row["topic_id"] in ids for row in shares) < sum(row["partitions"] for row in topics):
        await tx.fetch("make_log_shares", name=who["name"], topic_ids=ids)
        shares = await tx.fetch("list_log_shares", **who, topic_ids=ids)
    return shares


async def _take(
    tx: Transaction, who: dict[str, Any], places: Sequence[Partition], ids: dict[str, int]
) -> list[Share]:  # fmt: skip
    if not places:
        return []
    names = {number: name for name, number in ids.items()}
    topic_ids, partitions = [ids[topic] for topic, _ in places], [number for _, number in places]
    rows = await tx.fetch("take_log_shares", **who, topic_ids=topic_ids, partitions=partitions)
    return [_share(names[row["topic_id"]], row) for row in rows]


def _share(topic: str, row: Row) -> Share:
    return Share(topic, row["partition"], row["generation"], row["position"])
