"""Following on stores that are servers: several services, and logs of which parts were removed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest

from headrace import App, StorageResetError, StoreUnavailableError, chain, map_
from headrace.engine.following.batch import BatchGrower
from headrace.engine.following.run import RunGrower
from headrace.model.feed import NewEntry
from headrace.settings import load_settings
from headrace.stores.redis import RedisSite, adopt, create_namespace
from tests.backends.postgres import empty_schema, stores_on
from tests.backends.redis import empty_site
from tests.backends.server import shared_server
from tests.backends.valkey import ValkeyServer
from tests.integration.postgres_setup import connection
from tests.unit.event_reading import Event, Stream
from tests.unit.service_calls import served
from tests.unit.test_service_following import follow, listening
from tests.waiting import wait_until

COUNT = 30


@asynccontextmanager
async def place_of(kind: str) -> AsyncIterator[dict[str, str]]:
    """Make an empty store, and tell the variables by which apps find it."""
    if kind == "redis":
        async with empty_site() as site:
            yield {"HEADRACE_URL": site.url, "HEADRACE_QUEUE_STREAM_PREFIX": site.prefix}
    else:
        async with empty_schema() as schema, stores_on(schema, None):
            yield {"HEADRACE_URL": shared_server().dsn, "HEADRACE_QUEUE_SCHEMA": schema}


def shop(folder: Path, **environ: str) -> App:
    """Return an app on a store with a workflow that doubles each of some numbers."""
    environ = {"HEADRACE_DIRECTORY": str(folder), "HEADRACE_WORKER_POLL_INTERVAL": "50ms", **environ}
    app = App(settings=load_settings(environ=environ, file=folder / "none.toml"))

    @app.task
    async def numbers(count: int) -> list[int]:
        return list(range(count))

    @app.task
    async def double(number: int) -> int:
        return 2 * number

    app.workflow("doubles", chain(numbers.s(), map_(double)))
    return app


@pytest.mark.parametrize("kind", ["postgres", "redis"])
async def test_a_run_is_followed_through_two_services(kind: str, tmp_path: Path) -> None:
    """Both let its feed grow; a client that is cut and goes to the other one has every entry once and in order."""
    async with place_of(kind) as environ:
        one, two = shop(tmp_path, **environ), shop(tmp_path, **environ)
        async with listening(one) as (base, _), listening(two, worker=False) as (other, _):
            run = await one.start("doubles", COUNT)
            path, seen = f"/api/v1/runs/{run.id}/events", list[Event]()
            others = asyncio.gather(follow(base, path), follow(other, path))
            while not seen or seen[-1].type != "ended":
                stream = await Stream.open((base, other)[len(seen) % 2], path, last=seen[-1].id if seen else None)
                seen += await asyncio.wait_for(stream.events(7), 20)
                stream.close()
            assert await others == [seen, seen]
    assert [event.id for event in seen] == list(range(1, len(seen) + 1))
    ended = paths_of(seen)
    assert len(ended) == len(set(ended))
    assert len([path for path in ended if "[" in path]) == COUNT
    assert seen[-1].data["state"] == "succeeded"


async def test_what_was_removed_from_a_feed_is_told_and_comes_no_second_time(tmp_path: Path) -> None:
    """Of a run that is over, while a part of its log is left; once none is, the log is made anew."""
    async with place_of("redis") as environ:
        app = shop(tmp_path, **environ)
        async with listening(app) as (base, _):
            run = await app.start("doubles", 3)
            path = f"/api/v1/runs/{run.id}/events"
            events = await follow(base, path)
            assert await app.runtime.stores.feeds.prune_feeds(older_than=timedelta(0), limit=4) == 4

            grower = RunGrower(app.runtime.means, app.runtime.feeds, run.id)
            assert (await grower.look(), grower.over) == (False, True)
            assert await follow(base, path) == await follow(base, path, last=4) == events[4:]
            gone = await Stream.open(base, path, last=3)
            gone.close()
            assert gone.status == 410
            left = len(events) - 4
            assert await app.runtime.stores.feeds.prune_feeds(older_than=timedelta(0), limit=100) == left
            again = await follow(base, path)
    assert [event.id for event in again] == list(range(1, len(again) + 1))
    assert paths_of(again) == paths_of(events)
    assert again[-1].data == events[-1].data


async def test_items_that_were_removed_come_no_second_time(tmp_path: Path) -> None:
    """Though nothing but the end of the batch is left in its log."""
    async with place_of("redis") as environ:
        app = shop(tmp_path, **environ)
        async with listening(app) as (base, _):
            batch = await app.submit(app.find_task("double"), range(3))
            events = await follow(base, f"/api/v1/batches/{batch.id}/events")
            assert await app.runtime.stores.feeds.prune_feeds(older_than=timedelta(0), limit=3) == 3
            grower = BatchGrower(app.runtime.stores.inspect, app.runtime.feeds, batch.id)
            assert (await grower.look(), grower.over) == (False, True)
            assert await follow(base, f"/api/v1/batches/{batch.id}/events") == events[3:]


async def test_items_are_told_though_an_older_write_is_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than one read brings, which the cursor cannot pass yet, and the end behind them; also when appends fail."""
    monkeypatch.setattr("headrace.engine.following.batch.PAGE", 4)
    monkeypatch.setattr("headrace.engine.retrying.RETRY_DELAYS", ())
    async with place_of("postgres") as environ, connection() as other, shop(tmp_path, **environ) as app:
        batch = await app.submit(app.find_task("double"), range(10))
        async with other.transaction():
            await other.fetchval("SELECT pg_current_xact_id()")
            await batch.cancel()
            feeds, failures = app.runtime.stores.feeds, [StoreUnavailableError("away")] * 2
            append = feeds.append_entries

            async def append_later(feed: str, entries: Sequence[NewEntry]) -> list[int]:
                if len(entries) > 1 and failures:
                    raise failures.pop()
                return await append(feed, entries)

            monkeypatch.setattr(feeds, "append_entries", append_later)
            grower = BatchGrower(app.runtime.stores.inspect, app.runtime.feeds, batch.id)
            while not grower.over:
                with suppress(StoreUnavailableError):
                    await grower.look()
        found = await app.feed(f"batch:{batch.id}").read()
        assert [entry.type for entry in found] == ["item"] * 10 + ["closed"]
        assert sorted(entry.data["index"] for entry in found[:-1]) == list(range(10))
        assert len([item async for item in batch.results()]) == 10


@pytest.mark.parametrize("most", [4 << 20, 50])
async def test_results_are_paged_through_though_an_older_write_is_open(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each item once, on more than one page, until they are complete; also where pages end early."""
    monkeypatch.setattr("headrace.service.batches.MOST_PAGE", most)
    async with place_of("postgres") as environ, connection() as other:
        app = shop(tmp_path, **environ)
        async with served(app, worker=False) as client:
            batch = await app.submit(app.find_task("double"), range(60))
            seen, cursor, complete = list[int](), "", False
            async with other.transaction():
                await other.fetchval("SELECT pg_current_xact_id()")
                await batch.cancel()
                while not complete:
                    page = {"limit": 20, "cursor": cursor}
                    answer = (await client.get(f"/api/v1/batches/{batch.id}/results", params=page)).json()
                    seen += [item["index"] for item in answer["items"]]
                    cursor, complete = answer["cursor"], answer["complete"]
                    assert len(seen) <= 60
            assert sorted(seen) == list(range(60))
            answer = (await client.get(f"/api/v1/batches/{batch.id}/results", params={"cursor": cursor})).json()
            assert answer["items"] == []


def paths_of(events: Sequence[Event]) -> list[str]:
    """Return the paths of the nodes whose ends events tell, sorted."""
    nodes = [event.data for event in events if event.type == "node"]
    return sorted(node["path"] for node in nodes if node["state"] != "running")


@pytest.fixture
def server() -> Iterator[ValkeyServer]:
    """Return a server of the test's own, that it may flush."""
    started = ValkeyServer()
    yield started
    started.remove()


async def test_a_flushed_server_beside_the_store_takes_nothing_from_feeds(server: ValkeyServer, tmp_path: Path) -> None:
    """Limits are kept in Redis, feeds in PostgreSQL: they go on with the next number."""
    async with place_of("postgres") as environ, shop(tmp_path, HEADRACE_LIMITS_URL=server.url, **environ) as app:
        feed = app.feed("orders")
        async with aclosing(feed.follow()) as entries, asyncio.timeout(20):
            assert await feed.append("paid", 1, key="paid/1") == (await anext(entries)).seq == 1
            server.call("FLUSHALL")
            assert await feed.append("paid", 1, key="paid/1") == 1
            assert await feed.append("paid", 2, key="paid/2") == (await anext(entries)).seq == 2


async def test_a_feed_of_a_store_that_was_flushed_is_followed_from_its_new_beginning(
    server: ValkeyServer, tmp_path: Path
) -> None:
    """What was in it is lost and nothing is appended until the store is adopted; then followers see all that comes."""
    site = RedisSite(server.url, memory=tmp_path / "redis-epochs.json")
    await create_namespace(site)
    async with shop(tmp_path, HEADRACE_URL=server.url) as app:
        feed = app.feed("orders")
        async with aclosing(feed.follow()) as entries, asyncio.timeout(20):
            for number in range(3):
                await feed.append("paid", number, key=f"paid/{number}")
            assert [(await anext(entries)).seq for _ in range(3)] == [1, 2, 3]
            await wait_until(lambda: app.runtime.feeds._tails["orders"].end == 3)
            server.call("FLUSHALL")
            with pytest.raises(StorageResetError, match="headrace queue adopt"):
                await feed.append("paid", 3, key="paid/3")
            await adopt(site)
            await _append_again(app)
            assert [(entry.seq, entry.data) for entry in [await anext(entries) for _ in range(2)]] == [(1, 7), (2, 8)]


async def _append_again(app: App) -> None:
    """Append two entries once the app has noticed that its store was adopted."""
    while True:
        try:
            await app.feed("orders").append("paid", 7, key="paid/7")
            break
        except StorageResetError:
            await asyncio.sleep(0.05)
    await app.feed("orders").append("paid", 8, key="paid/8")
