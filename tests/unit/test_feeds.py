"""Feeds of an app: appends that go together, followers that share one tail, and what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import timedelta
from typing import Any

import pytest

from headrace import App, InvalidInputError, PayloadTooLargeError, StoreUnavailableError
from headrace.engine.feeds.hub import FeedHub
from headrace.engine.feeds.tail import MOST_KEPT
from headrace.model.errors import ConfigError
from headrace.model.feed import Entry, NewEntry
from tests.unit.feed_world import away, feed_world, item
from tests.waiting import wait_until


async def take(entries: AsyncGenerator[Entry, None], count: int) -> list[int]:
    """Return the numbers of the next entries, and stop following."""
    found: list[int] = []
    async with asyncio.timeout(10), aclosing(entries):
        async for entry in entries:
            found.append(entry.seq)
            if len(found) == count:
                break
    return found


async def test_what_is_appended_is_read_as_values() -> None:
    """Numbers from 1, data decoded, and the same key gives the same number."""
    async with App("memory://") as app:
        feed = app.feed("orders")
        assert await feed.append("paid", {"cents": 1200}, key="p") == 1
        assert await feed.append("paid", {"cents": 9}, key="p") == 1
        assert await feed.append("sent") == 2
        entries = await feed.read()
        assert [(one.seq, one.type, one.data, one.key) for one in entries] == [
            (1, "paid", {"cents": 1200}, "p"),
            (2, "sent", None, None),
        ]
        assert (await feed.read(1))[0].seq == 2
        assert (await feed.end(), await app.feed("other").end(), await app.feed("other").read()) == (2, 0, [])


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"type": "No Name"}, "entry type"),
        ({"type": "item", "data": object()}, "data"),
        ({"type": "item", "key": ""}, "key"),
        ({"type": "item", "data": float("nan")}, "data"),
    ],
)
async def test_what_no_feed_takes_is_named(arguments: dict[str, Any], field: str) -> None:
    """The error has the field, and nothing is appended."""
    async with App("memory://") as app:
        with pytest.raises(InvalidInputError) as caught:
            await app.feed("f").append(**arguments)
        assert caught.value.field == field
        assert await app.feed("f").end() == 0


async def test_bounds_are_kept() -> None:
    """Of names, of data, and of what is asked for."""
    async with App("memory://") as app:
        with pytest.raises(InvalidInputError, match="feed"):
            app.feed("line\nbreak")
        with pytest.raises(PayloadTooLargeError, match="64 KiB"):
            await app.feed("f").append("item", "x" * (64 << 10))
        with pytest.raises(InvalidInputError, match="limit"):
            await app.feed("f").read(limit=1_001)
        with pytest.raises(InvalidInputError, match="after"):
            await app.feed("f").read(after=-1)
        with pytest.raises(InvalidInputError, match="after"):
            await anext(app.feed("f").follow(-1))


async def test_appends_at_once_are_one_call() -> None:
    """Those that come while a call is under way go together in the next one, in their order."""
    hub, feeds, _ = feed_world()
    feeds.open.clear()
    first = asyncio.create_task(hub.append("f", item(1)))
    await asyncio.sleep(0)  # it is under way
    await asyncio.sleep(0)
    others = [asyncio.create_task(hub.append("f", item(number))) for number in range(2, 40)]
    await asyncio.sleep(0)
    feeds.open.set()
    assert [await first, *await asyncio.gather(*others)] == list(range(1, 40))
    assert feeds.appends == [1, 38]


async def test_an_answer_that_was_lost_is_asked_for_again_where_there_are_keys() -> None:
    """With keys the entry stands once; without, the caller hears that nobody knows."""
    hub, feeds, _ = feed_world()
    feeds.faults = [away()]
    assert await hub.append("f", item(1)) == 1
    feeds.faults = [away()]
    with pytest.raises(StoreUnavailableError):
        await hub.append("f", item(2, key=False))
    assert [entry.seq for entry in await hub.read("f", after=0, limit=9)] == [1, 2]


async def test_a_caller_that_goes_away_takes_no_other_with_it() -> None:
    """A cancelled append may have happened; those that went with it have their numbers."""
    hub, feeds, _ = feed_world()
    feeds.open.clear()
    tasks = [asyncio.create_task(hub.append("f", item(number))) for number in range(1, 4)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    feeds.open.set()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert (found[0], found[2]) == (1, 3)
    assert isinstance(found[1], asyncio.CancelledError)


@pytest.mark.parametrize("hints", [True, False], ids=["hints", "polls"])
async def test_every_follower_has_every_entry_once(hints: bool) -> None:
    """From wherever it begins, while others append: also without a single hint."""
    hub, _, _ = feed_world(hints=hints)
    await hub.append_all("f", [item(number) for number in range(1, 251)])
    tasks = [asyncio.create_task(take(hub.follow("f", after=after), 300 - after)) for after in (0, 100, 249, 260)]
    await wait_until(lambda: "f" in hub._tails and hub._tails["f"].end == 250)
    for number in range(251, 301):
        await hub.append("f", item(number))
    for task, after in zip(tasks, (0, 100, 249, 260), strict=True):
        assert await task == list(range(after + 1, 301))
    assert hub._tails == {} and hub._tasks == {}
    await hub.close()


async def test_followers_of_a_feed_share_its_reads() -> None:
    """A hundred followers at the end cost the store what one costs."""
    hub, feeds, _ = feed_world()
    tasks = [asyncio.create_task(take(hub.follow("f", after=0), 20)) for _ in range(100)]
    await wait_until(lambda: "f" in hub._tails and hub._tails["f"].followers == 100)
    await wait_until(lambda: hub._tails["f"].end == 0)
    feeds.reads = 0
    await hub.append_all("f", [item(number) for number in range(1, 21)])
    assert [len(found) for found in await asyncio.gather(*tasks)] == [20] * 100
    assert feeds.reads <= 5
    await hub.close()


async def test_a_follower_that_is_far_behind_reads_by_itself() -> None:
    """The tail keeps a bounded part; what lies before comes from the store, without a gap."""
    hub, _, _ = feed_world()
    slow = hub.follow("f", after=0)
    await hub.append("f", item(1))
    assert (await anext(slow)).seq == 1
    fast = asyncio.create_task(take(hub.follow("f", after=0), 2_000))
    await hub.append_all("f", [item(number) for number in range(2, 2_001)])
    assert await fast == list(range(1, 2_001))
    assert len(hub._tails["f"]._entries) <= 2 * MOST_KEPT
    assert await take(slow, 1_999) == list(range(2, 2_001))
    await hub.close()


async def test_a_store_that_is_away_is_waited_for() -> None:
    """Followers neither end nor miss anything."""
    hub, feeds, _ = feed_world()
    feeds.faults = [away(), away()]
    task = asyncio.create_task(take(hub.follow("f", after=0), 2))
    await wait_until(lambda: not feeds.faults)
    await hub.append_all("f", [item(1), item(2)])
    assert await task == [1, 2]
    await hub.close()


async def test_a_feed_that_was_forgotten_is_followed_from_its_new_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its numbers begin with 1 again: whoever waited behind the old end would wait for good."""
    monkeypatch.setattr("headrace.engine.feeds.tail.PAUSE", 0.01)
    monkeypatch.setattr("headrace.engine.feeds.tail.LONGEST_PAUSE", 0.02)
    monkeypatch.setattr("headrace.engine.feeds.tail.QUIET_SECONDS", 0.05)
    hub, feeds, _ = feed_world()
    await hub.append_all("f", [item(1), item(2), item(3)])
    follower = hub.follow("f", after=2)
    assert (await anext(follower)).seq == 3
    await wait_until(lambda: hub._tails["f"].end == 3)
    assert await feeds.prune_feeds(older_than=timedelta(seconds=-1), limit=10) == 3
    await hub.append("f", item(4))
    assert (await asyncio.wait_for(anext(follower), 5)).seq == 1
    await follower.aclose()
    await hub.close()


async def test_a_feed_that_began_anew_while_the_store_was_away_is_followed_from_its_new_beginning() -> None:
    """As after a loss of the store: hints come at once, so there is no quiet time in which its end is asked for."""
    hub, feeds, stores = feed_world()
    await hub.append_all("f", [item(1), item(2), item(3)])
    follower = hub.follow("f", after=2)
    assert (await anext(follower)).seq == 3
    await wait_until(lambda: hub._tails["f"].end == 3)
    feeds.faults = [away()]
    stores.notifier.hint("feed:f")
    await wait_until(lambda: not feeds.faults)
    assert await feeds.prune_feeds(older_than=timedelta(seconds=-1), limit=10) == 3
    await hub.append("f", item(4))
    assert (await asyncio.wait_for(anext(follower), 2)).seq == 1
    await follower.aclose()
    await hub.close()


async def test_a_feed_may_be_pruned_while_it_is_followed() -> None:
    """Who has seen what goes notices nothing; who has not sees by the numbers that something is missing."""
    hub, feeds, _ = feed_world()
    await hub.append_all("f", [item(number) for number in range(1, 6)])
    follower = hub.follow("f", after=0)
    assert [(await anext(follower)).seq for _ in range(5)] == [1, 2, 3, 4, 5]
    assert await feeds.prune_feeds(older_than=timedelta(seconds=-1), limit=4) == 4
    await hub.append("f", item(6))
    assert (await asyncio.wait_for(anext(follower), 5)).seq == 6
    await follower.aclose()
    assert await take(hub.follow("f", after=2), 2) == [5, 6]
    await hub.close()


async def test_closing_the_app_ends_what_follows() -> None:
    """With an error that says so, and not by waiting for good."""

    async def follow(hub: FeedHub) -> None:
        async for _ in hub.follow("f", after=0):
            pass

    hub, _, _ = feed_world()
    task = asyncio.create_task(follow(hub))
    await wait_until(lambda: "f" in hub._tails)
    await hub.close()
    with pytest.raises(ConfigError, match="closed"):
        await asyncio.wait_for(task, 5)


async def test_nothing_is_appended_behind_what_could_not_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of entries given together that need several calls; those of others are appended."""
    monkeypatch.setattr("headrace.engine.retrying.RETRY_DELAYS", ())
    monkeypatch.setattr("headrace.engine.feeds.writers.MOST_ENTRIES", 2)
    hub, feeds, _ = feed_world()
    append, calls = feeds.append_entries, list[int]()

    async def fail_once(feed: str, entries: Sequence[NewEntry]) -> list[int]:
        calls.append(len(entries))
        if len(calls) == 2:
            raise away()
        return await append(feed, entries)

    monkeypatch.setattr(feeds, "append_entries", fail_once)
    several = hub.append_all("f", [item(number) for number in range(1, 8)])
    found = await asyncio.gather(several, hub.append("f", item(9)), return_exceptions=True)
    assert isinstance(found[0], StoreUnavailableError) and found[1] == 3
    assert [entry.data for entry in await hub.read("f", after=0, limit=9)] == ["1", "2", "9"]


@pytest.mark.parametrize("seen", [5, 3], ids=["all seen", "some seen"])
async def test_followers_of_a_feed_that_lost_its_newest_go_on_behind_what_is_left(seen: int) -> None:
    """As after a fail-over of the store: what they had is not told again, and nothing that comes is left out."""
    hub, feeds, stores = feed_world()
    await hub.append_all("f", [item(number) for number in range(1, 6)])
    follower = hub.follow("f", after=seen)
    waiting = asyncio.create_task(anext(follower))
    await wait_until(lambda: "f" in hub._tails and hub._tails["f"].end == 5)
    if seen < 5:
        assert [(await waiting).seq, (await anext(follower)).seq] == [4, 5]
        waiting = asyncio.create_task(anext(follower))
    row = feeds._inner._feeds["f"]
    del row.keys[row.entries.pop().key]
    row.last = 4
    feeds.faults = [away()]
    stores.notifier.hint("feed:f")
    await wait_until(lambda: hub._tails["f"].end == 4)
    await hub.append_all("f", [item(6), item(7)])
    found = [await asyncio.wait_for(waiting, 5), await anext(follower)]
    assert [(entry.seq, entry.data) for entry in found] == [(5, "6"), (6, "7")]
    await follower.aclose()
    await hub.close()
