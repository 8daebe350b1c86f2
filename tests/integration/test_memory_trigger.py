"""The trigger on the buffer table: what it tells, in which envelope, and that a look follows each change."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import asyncpg
import pytest

from headrace.apps.memory.changes import no_trigger_sql, record_of, trigger_sql
from headrace.apps.memory.rules import priority_of
from headrace.engine.events.parts import EventParts
from headrace.model.envelopes import decode
from headrace.model.event import Event, Message, Outgoing
from tests.backends.server import shared_server
from tests.integration.memory_changes_world import PREFIX, World, world
from tests.waiting import wait_until


def read(row: Any) -> Event:
    """Return the event of a raw message of the outbox."""
    assert row["raw"]
    event = decode(Message(row["topic"], row["key"], row["message"], tuple(json.loads(row["headers"]))))
    assert event is not None
    return event


async def test_a_statement_tells_each_row_once_in_debeziums_envelope() -> None:
    """Each is an event of its own, and a record; a transaction that rolls back tells nothing."""
    async with world() as at:
        ids = await at.insert("ada", "ben", "ada")
        with pytest.raises(ZeroDivisionError):
            async with at.connection.transaction():
                await at.insert("gone")
                raise ZeroDivisionError
        rows = await at.told()
        events = [read(row) for row in rows]
        records = [record_of(event, read_snapshots=False) for event in events]
        assert {row["topic"] for row in rows} == {at.topic}
        assert [event.type for event in events] == ["memory.buffer_zone.Created"] * 3
        assert sorted(event.aggregate_id for event in events) == sorted(map(str, ids))
        assert len({event.id for event in events}) == len({row["event_id"] for row in rows}) == 3
        assert sorted((one.user_id, one.buffer_size) for one in records if one) == [("ada", 7), ("ada", 7), ("ben", 7)]
        moments = await at.connection.fetch(f"SELECT updated_at FROM {at.schema}.buffer_zone")
        assert {one.timestamp for one in records if one} == {row["updated_at"] for row in moments}
        source = events[0].payload["source"]
        assert (source["connector"], source["name"], source["schema"]) == ("postgresql", PREFIX, at.schema)
        assert isinstance(source["lsn"], int) and isinstance(source["txId"], int)


async def test_changes_of_a_row_in_one_transaction_are_different_events() -> None:
    """However often it is changed; also where an insert turns into an update."""
    async with world() as at:
        async with at.connection.transaction():
            [own] = await at.insert("ada")
            for tokens in range(8, 11):
                await at.connection.execute(f"UPDATE {at.schema}.buffer_zone SET token_size = $1", tokens)
            await at.connection.execute(
                f"INSERT INTO {at.schema}.buffer_zone (id, blob_id, token_size, user_id, blob_type) "
                "VALUES ($1, gen_random_uuid(), 11, 'ada', 'chat') ON CONFLICT (id) DO UPDATE SET token_size = 11",
                own,
            )
        events = [read(row) for row in await at.told()]
        assert [event.payload["op"] for event in events] == ["c", "u", "u", "u", "u"]
        assert [event.payload["after"]["token_size"] for event in events] == [7, 8, 9, 10, 11]
        assert len({event.id for event in events}) == 5


async def test_what_memory_does_itself_is_not_told() -> None:
    """Rows that are bound to a flush, are processed or done, or go."""
    async with world() as at:
        await at.insert("ada")
        for change in ("flush_id = gen_random_uuid()", "status = 'processing'", "status = 'done'"):
            await at.connection.execute(f"UPDATE {at.schema}.buffer_zone SET {change}")
        await at.connection.execute(f"DELETE FROM {at.schema}.buffer_zone")
        assert len(await at.told()) == 1


async def test_whoever_may_insert_need_not_know_the_outbox() -> None:
    """The trigger writes with the rights of its owner, and with any setting of the session."""
    async with world() as at:
        role = f"guest_{at.schema}"
        await at.connection.execute(f"CREATE ROLE {role}")
        await at.connection.execute(f"GRANT USAGE ON SCHEMA {at.schema} TO {role}")
        await at.connection.execute(f"GRANT INSERT ON {at.schema}.buffer_zone, {at.schema}.users TO {role}")
        try:
            await at.connection.execute(f"SET ROLE {role}; SET timezone = 'Asia/Kolkata'; SET datestyle = 'German'")
            await at.insert("ada")
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await at.told()
        finally:
            await at.connection.execute("RESET ROLE")
            await at.connection.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")
        [row] = await at.told()
        assert read(row).payload["after"]["updated_at"].endswith("+00:00")
        assert record_of(read(row), read_snapshots=False) is not None


async def test_the_trigger_is_made_anew_and_removed() -> None:
    """Twice is once; without it nothing is told."""
    async with world() as at:
        await at.connection.execute(trigger_sql(at.schema, at.store, PREFIX))
        await at.insert("ada")
        assert len(await at.told()) == 1
        for _ in range(2):
            await at.connection.execute(no_trigger_sql(at.schema))
        await at.insert("ben")
        assert len(await at.told()) == 1


async def test_a_look_follows_every_change() -> None:
    """Eight write at once, and the last look at each user sees all there is; none of them is told a failure."""
    async with world() as at:
        seen: dict[str, int] = {}
        users = [f"u-{number}" for number in range(20)]

        async def write(first: int) -> None:
            connection = await asyncpg.connect(shared_server().dsn)
            try:
                for number in range(10):
                    await at.insert(
                        users[(first + number) % 20], users[(first + 2 * number) % 20], connection=connection
                    )
            finally:
                await connection.close()

        app = at.app(seen)
        async with app.worker(grace="2s"):
            await asyncio.gather(*(write(first) for first in range(8)))
            rows = await at.connection.fetch(
                f"SELECT user_id, count(*) AS count FROM {at.schema}.buffer_zone GROUP BY user_id"
            )
            wanted = {row["user_id"]: row["count"] for row in rows}
            await wait_until(lambda: seen == wanted)
            await wait_until(lambda: _nothing_waits(at))
        assert sum(wanted.values()) == 160


async def _nothing_waits(at: World) -> bool:
    return not await at.pending() and not await at.told()


async def test_a_user_who_waits_for_a_look_gets_no_second_one_until_it_is_given_up() -> None:
    """However much comes; a note that is older than five minutes stands for a job that was given up."""
    async with world() as at:
        app = at.app()
        async with app.event_host(EventParts(relay=True, agents=None), grace=1):
            await at.insert("ada", "ben")
            await wait_until(lambda: _has(at, 2))
            await at.insert("ada", "ada")
            await wait_until(lambda: _has(at, 4))
            assert await at.jobs(app) == ["ada", "ben"]
            await at.connection.execute(
                f"UPDATE {at.schema}.pending_checks SET created_at = now() - interval '6 minutes' WHERE user_id = 'ben'"
            )
            await at.insert("ada", "ben", "ben")
            await wait_until(lambda: _has(at, 7))
            assert await at.jobs(app) == ["ada", "ben", "ben"]
            assert await at.pending() == ["ada", "ben"]


async def test_looks_go_by_the_level_of_their_users() -> None:
    """And by how old the oldest change is: by the rule of priority, with the weight of its kind."""
    async with world() as at:
        app = at.app()
        known = "('ada', 10), ('ben', 0), ('old', 0)"
        await at.connection.execute(f"INSERT INTO {at.schema}.users (id, level) VALUES {known}")
        await at.connection.execute(
            f"INSERT INTO {at.schema}.buffer_zone (id, blob_id, token_size, user_id, blob_type, updated_at) "
            "VALUES (gen_random_uuid(), gen_random_uuid(), 7, 'old', 'chat', now() - interval '2 hours')"
        )
        await at.insert("ada", "ben", "old")
        async with app.event_host(EventParts(relay=True, agents=None), grace=1):
            await wait_until(lambda: _has(at, 4))
            views = await app.runtime.stores.inspect.list_jobs(task="check_buffer", limit=10)
            found = {view.args["args"][0]: view.priority for view in views}
            assert found == {"ada": priority_of(3.6), "ben": priority_of(1.8), "old": priority_of(0.6)}


async def _has(at: World, handled: int) -> bool:
    found = await at.connection.fetchval(f"SELECT count(*) FROM {at.store}.event_inbox")
    return bool(found == handled)


async def test_a_wrong_change_is_a_dead_letter_and_the_others_go_on() -> None:
    """It says what is wrong with it, and is not tried again."""
    async with world() as at:
        app = at.app()
        async with app.event_host(EventParts(relay=True, agents=None), grace=1):
            await at.insert("ada")
            [row] = await at.told()
            bad = json.loads(row["message"])
            bad["after"]["user_id"], bad["source"]["lsn"] = None, 1
            message = Message(at.topic, row["key"], json.dumps(bad).encode())
            await app.event_stores.outbox.insert_events([Outgoing(at.topic, row["key"], None, message)])
            await at.insert("ben")
            await wait_until(lambda: _has(at, 3))
            assert await at.pending() == ["ada", "ben"]
            letters = (
                f"SELECT m.headers::text FROM {at.store}.log_messages AS m JOIN {at.store}.log_topics AS t "
                f"ON t.id = m.topic_id WHERE t.name = '{at.topic}.dlt'"
            )
            [headers] = await wait_until(lambda: at.users(letters))
            facts = dict(json.loads(headers))
            assert facts["dlt-error"] == "after.user_id must be given, got None"
            assert (facts["dlt-attempts"], facts["dlt-agent"]) == ("0", "memoryconsumer")
