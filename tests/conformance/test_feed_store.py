"""FeedStore: ordered logs whose numbers have no gaps, whoever appends and reads."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise
from uuid import uuid4

import pytest

from headrace.model.errors import HeadraceError, InvalidInputError, PayloadTooLargeError
from headrace.model.feed import MAX_ENTRY_BYTES, Entry, NewEntry
from headrace.ports.feed_store import FeedStore
from tests.conformance.scenario import ALL, DAY, SECOND, Scenario
from tests.waiting import wait_until

KEPT = 7 * DAY
FEED = "batch:7 – é"


@pytest.fixture
def feeds(on: Scenario) -> FeedStore:
    """Return the feed store of the backend."""
    return on.stores.feeds


def entries(*data: str) -> list[NewEntry]:
    """Return entries without keys."""
    return [NewEntry("item", text) for text in data]


def keyed(*keys: str | None) -> list[NewEntry]:
    """Return entries with keys."""
    return [NewEntry("item", '"' + str(key) + '"', key) for key in keys]


async def numbers(feeds: FeedStore, feed: str = FEED, *, after: int = 0, limit: int = ALL) -> list[int]:
    """Return the numbers of the entries of a feed."""
    return [entry.seq for entry in await feeds.read_feed(feed, after=after, limit=limit)]


async def test_entries_are_read_as_they_were_appended(on: Scenario, feeds: FeedStore) -> None:
    """In order, from 1, with type, data, key and the time of the store."""
    first = on.clock.now()
    assert await feeds.append_entries(FEED, [NewEntry("accepted", '{"a": "é\\u0000"}', "k: 1"), *entries("1")]) == [
        1,
        2,
    ]
    on.clock.advance(SECOND)
    assert await feeds.append_entries(FEED, entries("null")) == [3]

    assert await feeds.read_feed(FEED, after=0, limit=ALL) == [
        Entry(1, "accepted", '{"a": "é\\u0000"}', "k: 1", first),
        Entry(2, "item", "1", None, first),
        Entry(3, "item", "null", None, first + SECOND),
    ]
    assert await feeds.feed_end(FEED) == 3


async def test_a_feed_is_read_behind_a_number(feeds: FeedStore) -> None:
    """In pages as large as asked for; behind the end there is nothing."""
    await feeds.append_entries(FEED, entries(*map(str, range(25))))

    assert await numbers(feeds, after=0, limit=10) == [*range(1, 11)]
    assert await numbers(feeds, after=10, limit=10) == [*range(11, 21)]
    assert await numbers(feeds, after=20, limit=10) == [*range(21, 26)]
    assert await numbers(feeds, after=25) == await numbers(feeds, after=1_000) == []


async def test_a_feed_that_does_not_exist_is_empty(feeds: FeedStore) -> None:
    """Nothing is read, its end is 0, and appending nothing does not make it."""
    assert await feeds.append_entries(FEED, []) == []
    assert await feeds.read_feed(FEED, after=0, limit=ALL) == []
    assert await feeds.feed_end(FEED) == 0


async def test_feeds_are_numbered_apart(feeds: FeedStore) -> None:
    """Also those whose names look alike; a key is one of its feed."""
    names = ["a", "A", "a ", "a:b", "a:b:c"]
    for name in names:
        assert await feeds.append_entries(name, keyed("k", None)) == [1, 2]

    assert [await feeds.feed_end(name) for name in names] == [2] * len(names)


async def test_a_key_is_appended_once(feeds: FeedStore) -> None:
    """Again it gives the number of the first, and the entry that is there stays as it is."""
    assert await feeds.append_entries(FEED, keyed("a", "b")) == [1, 2]
    again = [NewEntry("other", '"x"', "b"), *keyed("c", "a", "c", None, None)]
    assert await feeds.append_entries(FEED, again) == [2, 3, 1, 3, 4, 5]

    read = await feeds.read_feed(FEED, after=0, limit=ALL)
    assert [(entry.seq, entry.type, entry.key) for entry in read] == [
        (1, "item", "a"), (2, "item", "b"), (3, "item", "c"), (4, "item", None), (5, "item", None),
    ]  # fmt: skip


async def test_appending_again_changes_nothing(feeds: FeedStore) -> None:
    """As after an answer that was lost: the same numbers, and the end stays."""
    for _ in range(3):
        assert await feeds.append_entries(FEED, keyed("a", "b", "a")) == [1, 2, 1]

    assert await feeds.feed_end(FEED) == 2


async def test_appends_at_once_leave_no_gap(feeds: FeedStore) -> None:
    """20 appenders of slices to one feed: every number once, each slice in its order."""

    async def appender(name: int) -> list[list[int]]:
        return [
            await feeds.append_entries(FEED, entries(f"[{name},{turn},0]", f"[{name},{turn},1]")) for turn in range(5)
        ]

    slices = [one for some in await asyncio.gather(*map(appender, range(20))) for one in some]

    assert sorted(number for one in slices for number in one) == [*range(1, 201)]
    assert all(one[1] == one[0] + 1 for one in slices)
    assert await numbers(feeds) == [*range(1, 201)]


async def test_of_appends_of_a_key_at_once_one_stands(feeds: FeedStore) -> None:
    """All are told its number."""
    answers = await asyncio.gather(*(feeds.append_entries(FEED, keyed("a", "b")) for _ in range(20)))

    assert answers == [[1, 2]] * 20
    assert await numbers(feeds) == [1, 2]


async def test_who_follows_sees_every_number_in_order(feeds: FeedStore) -> None:
    """A reader behind its own last number meets no gap and nothing twice, while 8 appenders race."""
    seen: list[int] = []

    async def follow() -> None:
        while len(seen) < 160:
            seen.extend(await numbers(feeds, after=seen[-1] if seen else 0, limit=7))
            await asyncio.sleep(0)  # a store in this process may answer without giving anybody else a turn

    async def appender() -> None:
        for _ in range(20):
            await feeds.append_entries(FEED, entries("1"))

    async with asyncio.timeout(30):
        await asyncio.gather(follow(), follow_end(feeds, 160), *(appender() for _ in range(8)))
    assert seen == [*range(1, 161)]


async def follow_end(feeds: FeedStore, last: int) -> None:
    """Look at the end until it is the last: it never falls, and what it promises can be read."""
    ends = [0]
    while ends[-1] < last:
        ends.append(await feeds.feed_end(FEED))
        await asyncio.sleep(0)
        assert ends[-1] == 0 or await numbers(feeds, after=ends[-1] - 1, limit=1) == ends[-1:]
    assert all(one <= two for one, two in pairwise(ends))


async def test_an_append_is_hinted(on: Scenario, feeds: FeedStore) -> None:
    """Who follows need not wait for the poll; where nothing was appended nothing is hinted."""
    heard: list[str] = []
    await on.stores.notifier.subscribe(heard.append)
    await feeds.append_entries("a", keyed("k"))
    await wait_until(lambda: "feed:a" in heard)
    heard.clear()
    await feeds.append_entries("a", keyed("k"))
    await feeds.append_entries("a", [])
    await feeds.append_entries("b", keyed("k"))

    await wait_until(lambda: "feed:b" in heard)
    assert "feed:a" not in heard


@pytest.mark.parametrize(
    ("feed", "entry", "error"),
    [
        ("", NewEntry("item", "1"), InvalidInputError),
        ("a\n", NewEntry("item", "1"), InvalidInputError),
        ("a" * 256, NewEntry("item", "1"), InvalidInputError),
        ("a", NewEntry("", "1"), InvalidInputError),
        ("a", NewEntry("Item", "1"), InvalidInputError),
        ("a", NewEntry("item", "1", ""), InvalidInputError),
        ("a", NewEntry("item", "1", "k\0"), InvalidInputError),
        ("a", NewEntry("item", "1", "k" * 256), InvalidInputError),
        ("a", NewEntry("item", '"' + "é" * (MAX_ENTRY_BYTES // 2) + '"'), PayloadTooLargeError),
    ],
)
async def test_what_is_no_entry_is_refused(
    feeds: FeedStore, feed: str, entry: NewEntry, error: type[HeadraceError]
) -> None:
    """With all that came along: the feed has nothing of it."""
    with pytest.raises(error):
        await feeds.append_entries(feed, [NewEntry("item", "1"), entry])

    assert await feeds.feed_end("a") == 0


async def test_the_largest_entry(feeds: FeedStore) -> None:
    """Names, keys and data as long as they may be are kept."""
    feed, key, data = "𝄞" * 255, "𝄟" * 255, '"' + "x" * (MAX_ENTRY_BYTES - 2) + '"'
    assert await feeds.append_entries(feed, [NewEntry("t" * 64, data, key)]) == [1]
    assert await feeds.append_entries(feed, [NewEntry("t" * 64, data, key)]) == [1]

    [entry] = await feeds.read_feed(feed, after=0, limit=1)
    assert (entry.data, entry.key) == (data, key)


async def test_old_entries_are_removed(on: Scenario, feeds: FeedStore) -> None:
    """Counted from when each was appended; those that stay keep their numbers, and new ones follow them."""
    await feeds.append_entries(FEED, keyed("a", "b", None))
    on.clock.advance(KEPT - SECOND)
    assert await feeds.prune_feeds(older_than=KEPT, limit=ALL) == 0
    await feeds.append_entries(FEED, keyed("c"))
    on.clock.advance(SECOND)

    assert await feeds.prune_feeds(older_than=KEPT, limit=ALL) == 3
    assert await feeds.prune_feeds(older_than=KEPT, limit=ALL) == 0
    assert await numbers(feeds) == [4]
    assert await numbers(feeds, after=4) == []
    assert await feeds.append_entries(FEED, keyed("c", "a")) == [4, 5]


async def test_a_feed_without_entries_is_forgotten(on: Scenario, feeds: FeedStore) -> None:
    """Then it begins with 1 again, and its keys are free."""
    await feeds.append_entries(FEED, keyed("a", "b"))
    await feeds.append_entries("other", keyed("a"))
    on.clock.advance(KEPT)
    await feeds.append_entries("other", keyed("b"))

    assert await feeds.prune_feeds(older_than=KEPT, limit=ALL) == 3
    assert (await feeds.feed_end(FEED), await feeds.feed_end("other")) == (0, 2)
    assert await feeds.append_entries(FEED, keyed("b")) == [1]
    assert await feeds.append_entries("other", keyed("a")) == [3]


async def test_pruning_stops_at_its_limit(on: Scenario, feeds: FeedStore) -> None:
    """The oldest of a feed go first, the next calls go on; a page behind an old number begins with what is left."""
    for feed in ("a", "b"):
        await feeds.append_entries(feed, keyed("1", "2", "3"))
        on.clock.advance(SECOND)
    on.clock.advance(KEPT)

    assert await feeds.prune_feeds(older_than=KEPT, limit=2) == 2
    assert [await numbers(feeds, feed) for feed in ("a", "b")] == [[3], [1, 2, 3]]
    assert await numbers(feeds, "a", after=1, limit=1) == [3]
    assert [await feeds.prune_feeds(older_than=KEPT, limit=2) for _ in range(3)] == [2, 2, 0]
    assert [await feeds.feed_end(feed) for feed in ("a", "b")] == [0, 0]


async def test_what_is_removed_leaves_no_gap(on: Scenario, feeds: FeedStore) -> None:
    """Also where the clock was set back: an entry stays that has a younger one before it."""
    for step in (DAY, -0.7 * DAY, DAY):
        await feeds.append_entries(FEED, entries("1"))
        on.clock.set_now(on.clock.now() + step)
    await feeds.append_entries(FEED, entries("1"))
    on.clock.advance(KEPT - 0.9 * DAY)

    assert await feeds.prune_feeds(older_than=KEPT, limit=ALL) == 1
    assert await numbers(feeds) == [2, 3, 4]


async def test_long_feeds_are_removed_part_by_part(on: Scenario, feeds: FeedStore) -> None:
    """Many more entries than a page has, of several feeds."""
    for feed in ("a", "b"):
        await feeds.append_entries(feed, entries(*["1"] * 130))
    on.clock.advance(KEPT)
    await feeds.append_entries("b", entries("2"))

    assert await feeds.prune_feeds(older_than=KEPT, limit=115) == 115
    assert await feeds.prune_feeds(older_than=KEPT, limit=ALL) == 145
    assert (await numbers(feeds, "a"), await numbers(feeds, "b")) == ([], [131])


async def test_removing_under_appends_loses_nothing(on: Scenario, feeds: FeedStore) -> None:
    """Feeds that are pruned while they grow keep what is young, with the numbers that were given."""
    await feeds.append_entries(FEED, entries(*["1"] * 50))
    on.clock.advance(KEPT)
    given: list[int] = []

    async def appender() -> None:
        for _ in range(10):
            given.extend(await feeds.append_entries(FEED, entries("2")))

    async def pruner() -> int:
        return sum([await feeds.prune_feeds(older_than=KEPT, limit=5) for _ in range(20)])

    await feeds.append_entries(FEED, entries("2"))
    await asyncio.gather(appender(), pruner(), appender())
    while await feeds.prune_feeds(older_than=KEPT, limit=ALL):
        pass
    assert sorted(given) == [*range(52, 72)]
    assert await numbers(feeds) == [*range(51, 72)]


async def test_a_term_that_is_over_removes_nothing(on: Scenario, feeds: FeedStore) -> None:
    """Only the term that holds does."""
    await feeds.append_entries(FEED, keyed("a"))
    on.clock.advance(KEPT)
    term = await on.term()

    for false_term in (replace(term, session=uuid4()), replace(term, term=term.term - 1)):
        assert await feeds.prune_feeds(older_than=KEPT, limit=ALL, term=false_term) == 0
    assert await feeds.prune_feeds(older_than=KEPT, limit=ALL, term=term) == 1
