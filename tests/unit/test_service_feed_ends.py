"""Streams at the edges of feeds: behind the last entry, before what was removed, and where nothing comes any more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta, tzinfo
from functools import partial
from typing import Any

import pytest

from headrace.engine.feeds.hub import FeedHub
from headrace.engine.following.batch import batch_feed
from headrace.engine.following.run import RunGrower, run_feed
from headrace.model.feed import Entry, NewEntry
from headrace.service.sse import EventStream, Source, entries_of
from headrace.service.streams import Streams
from tests.unit.event_reading import Stream
from tests.unit.feed_world import feed_world, item
from tests.unit.service_calls import code_of, served
from tests.unit.test_service_details import ASKED, PATH, details_served
from tests.unit.test_service_following import follow, listening, shop

ALL: dict[str, Any] = {"older_than": timedelta(seconds=-1), "limit": 1_000}


async def sent_of(hub: FeedHub, source: Source, after: int) -> str:
    """Return what a stream sends until it ends by itself."""
    sent = bytearray()

    async def send(message: Any) -> None:
        sent.extend(message.get("body", b""))

    async def wait(*_: Any) -> Any:
        await asyncio.Event().wait()

    async with asyncio.timeout(5):
        stream = EventStream(Streams(9), partial(entries_of, hub, source, after), wait)
        await stream({"type": "http", "client": None}, wait, send)
    return sent.decode()


async def test_what_stands_behind_the_last_entry_is_not_told() -> None:
    """Also where it comes with it; and whoever saw the end, or what stands behind, is told that nothing follows."""
    app = shop()
    async with listening(app, worker=False) as (base, _):
        run = await app.start("half", 4)
        await run.cancel()
        path = f"/api/v1/runs/{run.id}/events"
        events = await follow(base, path)
        assert events[-1].type == "ended"
        late = await app.runtime.feeds.append(run_feed(run.id), NewEntry("node", "{}", "late"))
        assert await follow(base, path) == events
        for last in (events[-1].id, late):
            stream = await Stream.open(base, path, last=last)
            stream.close()
            assert stream.status == 204
        grower = RunGrower(app.runtime.means, app.runtime.feeds, run.id)
        assert (await grower.look(), grower.over) == (False, True)


async def test_an_id_of_another_service_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though this one has not heard of its entry yet."""
    app = shop()
    async with listening(app, worker=False) as (base, _):
        batch = await app.submit(app.find_task("halve"), [1])
        path, name, feeds = f"/api/v1/batches/{batch.id}/events", batch_feed(batch.id), app.runtime.stores.feeds
        await feeds.append_entries(name, [NewEntry("round", "{}")])
        stream = await Stream.open(base, path)
        assert [event.id for event in await stream.events(1)] == [1]
        monkeypatch.setattr(feeds, "_notifier", feed_world(hints=False)[2].notifier)
        await feeds.append_entries(name, [NewEntry("round", "{}")] * 2)
        assert app.runtime.feeds._tails[name].end == 1
        for last, status in ((3, 200), (4, 400)):
            other = await Stream.open(base, path, last=last)
            assert other.status == status
            other.close()
        stream.close()


async def test_a_feed_of_which_all_was_removed_says_so() -> None:
    """Whoever saw entries of it is not told that they never were."""
    app = shop()
    async with served(app, worker=False) as client:
        batch = await app.submit(app.find_task("halve"), [1])
        feeds, path = app.runtime.stores.feeds, f"/api/v1/batches/{batch.id}/events"
        await feeds.append_entries(batch_feed(batch.id), [NewEntry("round", "{}")] * 3)
        assert await feeds.prune_feeds(**ALL) == 3
        answer = await client.get(path, headers={"last-event-id": "3"})
        assert (answer.status_code, code_of(answer)) == (410, "entries_gone")


@pytest.mark.parametrize(("after", "ids"), [(2, []), (0, [5, 6])])
async def test_entries_that_are_removed_before_they_were_sent_end_the_stream(after: int, ids: list[int]) -> None:
    """Who has seen those before them is told so when it comes again; a new follower has those that are left."""
    hub, feeds, _ = feed_world()
    await hub.append_all("f", [item(number) for number in range(1, 7)])

    @asynccontextmanager
    async def pruned() -> AsyncIterator[None]:
        assert await feeds.prune_feeds(older_than=ALL["older_than"], limit=4) == 4
        yield

    def is_last(entry: Entry) -> bool:
        return entry.seq == 6

    text = await sent_of(hub, Source("f", is_last, pruned()), after)
    assert [int(line[4:]) for line in text.splitlines() if line.startswith("id: ")] == ids
    await hub.close()


async def test_the_stream_of_a_batch_that_was_removed_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a silence: nothing will come."""
    monkeypatch.setattr("headrace.service.sse.PING_SECONDS", 0.02)
    app = shop()
    async with listening(app, worker=False) as (base, _):
        batch = await app.submit(app.find_task("halve"), [1])
        stream = await Stream.open(base, f"/api/v1/batches/{batch.id}/events")
        await stream.chunk()

        async def nothing(_: object) -> None:
            """Return what a store has of a batch that was removed."""

        monkeypatch.setattr(app.runtime.stores.inspect, "get_batch", nothing)
        assert await asyncio.wait_for(stream.events(), 10) == []
        stream.close()


class Later(datetime):
    """A clock of next month."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Later:
        return cls.fromtimestamp(time.time() + 30 * 86_400, tz)


async def test_details_of_which_nothing_will_come_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were cancelled have their end, and those whose entries were removed are gone."""
    async with asyncio.timeout(10), details_served(worker=False) as (client, desk):
        batch = (await desk.submit(ASKED)).batch_id
        await desk.app.job(batch).cancel()
        assert '{"status":"cancelled"' in (await client.get(f"{PATH}/{batch}/events")).text
        old = (await desk.submit(ASKED)).batch_id
        monkeypatch.setattr("headrace.service.details.datetime", Later)
        answer = await client.get(f"{PATH}/{old}/events")
        assert (answer.status_code, code_of(answer)) == (410, "entries_gone")
