"""Races on feeds: numbers follow commits, and pruning loses nothing that is being appended."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from headrace.model.feed import NewEntry
from tests.integration.postgres_setup import connection, schema_stores
from tests.integration.test_postgres_races import lock_waits

AGE = """UPDATE "{schema}".feeds SET oldest_at = now() - interval '2 days'"""
AGE_ENTRIES = """UPDATE "{schema}".feed_entries SET appended_at = now() - interval '2 days'"""
APPEND = """SELECT seq FROM "{schema}".append_entries('f', '{{item}}', '{{1}}', ARRAY[NULL], NULL)"""
DAY, ONE = timedelta(days=1), NewEntry("item", "1")


async def test_a_number_is_given_once_the_one_before_is_committed() -> None:
    """Who appends waits for who appended; until then readers see neither, then both."""
    async with schema_stores() as (schema, stores), connection() as other:
        await stores.feeds.append_entries("f", [ONE])
        transaction = other.transaction()
        await transaction.start()
        assert await other.fetchval(APPEND.format(schema=schema)) == 2
        appending = asyncio.create_task(stores.feeds.append_entries("f", [ONE]))
        await lock_waits(schema)
        assert [entry.seq for entry in await stores.feeds.read_feed("f", after=0, limit=9)] == [1]
        await transaction.commit()

        assert await appending == [3]
        assert [entry.seq for entry in await stores.feeds.read_feed("f", after=0, limit=9)] == [1, 2, 3]


async def test_a_number_that_was_not_committed_is_given_again() -> None:
    """What is undone leaves no gap."""
    async with schema_stores() as (schema, stores), connection() as other:
        transaction = other.transaction()
        await transaction.start()
        assert await other.fetchval(APPEND.format(schema=schema)) == 1
        appending = asyncio.create_task(stores.feeds.append_entries("f", [ONE, ONE]))
        await lock_waits(schema)
        await transaction.rollback()

        assert await appending == [1, 2]


async def test_a_feed_that_grows_just_now_is_not_forgotten() -> None:
    """All that is committed of it is old; pruning passes it over, and what comes keeps its number."""
    async with schema_stores(lock_timeout=timedelta(seconds=2)) as (schema, stores), connection() as other:
        await stores.feeds.append_entries("f", [ONE])
        for text in (AGE, AGE_ENTRIES):
            await other.execute(text.format(schema=schema))
        transaction = other.transaction()
        await transaction.start()
        assert await other.fetchval(APPEND.format(schema=schema)) == 2
        pruning = asyncio.create_task(stores.feeds.prune_feeds(older_than=DAY, limit=9))
        await asyncio.wait([pruning], timeout=0.3)
        await transaction.commit()

        assert await pruning == 0
        assert [entry.seq for entry in await stores.feeds.read_feed("f", after=0, limit=9)] == [1, 2]
        assert await stores.feeds.prune_feeds(older_than=DAY, limit=9) == 1
        assert await stores.feeds.append_entries("f", [ONE]) == [3]


async def test_who_waited_for_a_feed_that_was_forgotten_begins_it_anew() -> None:
    """Its row is gone when the lock is given: a new one is made."""
    async with schema_stores() as (schema, stores), connection() as other:
        await stores.feeds.append_entries("f", [ONE])
        transaction = other.transaction()
        await transaction.start()
        await other.execute(f'DELETE FROM "{schema}".feed_entries')
        await other.execute(f'DELETE FROM "{schema}".feeds')
        appending = asyncio.create_task(stores.feeds.append_entries("f", [ONE]))
        await lock_waits(schema)
        await transaction.commit()

        assert await appending == [1]
        assert await stores.feeds.feed_end("f") == 1
