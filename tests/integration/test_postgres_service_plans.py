"""Plans of feeds, API tokens, the audit and calls of a job: each statement finds its few rows by an index."""

from __future__ import annotations

import re

import pytest

from tests.integration.postgres_setup import database
from tests.integration.test_postgres_plans import EMPTIED, plan, used

#: Feeds of so many entries, one of them old, and many tokens.
FILLING = (
    """INSERT INTO "{schema}".feeds (name, last_seq, oldest_at)
      SELECT 'f' || n, {entries}, now() + n * interval '1 second' FROM generate_series(1, {feeds}) AS n""",
    """INSERT INTO "{schema}".feed_entries (feed_id, seq, appended_at, type, key, data)
      SELECT f.id, n, now(), 'item', CASE WHEN n % 2 = 0 THEN 'k' || n END, '{{}}'
      FROM "{schema}".feeds AS f, generate_series(1, {entries}) AS n""",
    """INSERT INTO "{schema}".api_tokens (id, created_at, name, shown, digest, scopes)
      SELECT gen_random_uuid(), now() + n * interval '1 second', 'ci', 'hra_', md5(n::text), '{{read}}'
      FROM generate_series(1, 10000) AS n""",
    """INSERT INTO "{schema}".actions (id, done_at, status, via, who, address, operation, subject, detail)
      SELECT gen_random_uuid(), now() + n * interval '1 second', 200, 'api', 'who' || n % 50, '', 'operation' || n % 50,
        '{{}}', '{{}}' FROM generate_series(1, 10000) AS n""",
    """INSERT INTO "{schema}".calls (id, job_id, opened_at, prompt_tokens, most_tokens, day, state, key, pool, provider,
        model, purpose, scopes)
      SELECT gen_random_uuid(), md5((n % 5000)::text)::uuid, now() + n * interval '1 second', 1, 1, current_date,
        'settled', 'k' || n, 'p', 'a', 'm', 'ask', '{{}}' FROM generate_series(1, 10000) AS n""",
)
TABLES = ("feeds", "feed_entries", "api_tokens", "actions", "calls")
SCAN = re.compile(rf"Seq Scan on ({'|'.join(TABLES)})\b")
#: What each statement may use.
WAYS = {
    "read_feed": {"feeds_name", "feed_entries_pkey"},
    "feed_end": {"feeds_name"},
    "hold_old_feeds": {"feeds_oldest"},
    "prune_feeds": {"feeds_pkey", "feed_entries_pkey"},
    "get_token": {"api_tokens_pkey"},
    "find_token": {"api_tokens_digest"},
    "list_tokens": {"api_tokens_newest"},
    "revoke_token": {"api_tokens_pkey"},
    "note_token_uses": {"api_tokens_pkey"},
    "list_actions": {"actions_newest"},
    "list_actions_of": {"actions_who"},
    "list_operation": {"actions_operation"},
    "prune_actions": {"actions_newest", "actions_pkey"},
    "list_calls_of_job": {"calls_job"},
}
#: What the function that appends looks for.
APPENDING = (
    ("""SELECT f.id FROM "{schema}".feeds AS f WHERE f.name = 'f1' FOR UPDATE""", "feeds_name"),
    ("""SELECT e.seq FROM "{schema}".feed_entries AS e WHERE e.feed_id = 1 AND e.key = 'k8'""", "feed_entries_key"),
)


@pytest.mark.parametrize(
    ("feeds", "entries"),
    [
        pytest.param(200, 100, id="many feeds"),
        pytest.param(1, 20_000, id="one feed, such as that of all details"),
        pytest.param(1_000, 1_000, id="a million entries", marks=pytest.mark.slow),
        pytest.param(1, 1_000_000, id="a million entries of one feed", marks=pytest.mark.slow),
    ],
)
async def test_each_statement_finds_its_rows_by_an_index(feeds: int, entries: int) -> None:
    """Nothing scans a table; reading a feed sorts nothing."""
    async with database(fresh=True, pinned=True) as opened:
        connection = await opened.connect()
        for text in FILLING:
            await connection.execute(text.format(schema=opened.schema, feeds=feeds, entries=entries))
        for analysed in (False, True):
            if analysed:
                await connection.execute("ANALYZE " + ", ".join(f'"{opened.schema}".{table}' for table in TABLES))
            plans = {name: await plan(opened, name, connection) for name in WAYS}
            for text, index in APPENDING:
                rows = await connection.fetch("EXPLAIN (COSTS OFF) " + text.format(schema=opened.schema))
                assert used("\n".join(row[0] for row in rows)) == {index}, rows
            for name, allowed in WAYS.items():
                assert {found for found in used(plans[name]) if found.startswith(TABLES)} == allowed, plans[name]
                assert not SCAN.search(plans[name]), plans[name]
            assert "Sort" not in plans["read_feed"]
        await connection.close()


async def test_reading_keeps_to_keys_whatever_the_statistics_say() -> None:
    """A feed that was analysed while empty is still read by its keys."""
    async with database(fresh=True, pinned=True) as opened:
        connection = await opened.connect()
        await connection.execute(EMPTIED, opened.schema)
        text = await plan(opened, "read_feed", connection)
        await connection.close()
        assert used(text) == {"feeds_name", "feed_entries_pkey"}, text
