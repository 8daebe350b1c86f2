"""Eight at once, each with connections of its own: no row twice, no order lost, no change lost, no deadlock."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import ConflictError
from headrace.apps.memory.data.flushes import Flush, Held, Reason
from headrace.apps.memory.data.profiles import ProfileChange
from headrace.apps.memory.errors import LostFlushError
from headrace.apps.memory.tables import Committed, Conflict, MemoryTables
from headrace.apps.memory.tables.splitting import Row, split
from tests.integration.memory_tables_world import (
    LEASE,
    NO_TIME,
    WRITERS,
    add,
    chat,
    fill,
    flushes,
    held,
    open_one,
    open_tables,
    rows_of,
    told,
)


@given(st.lists(st.integers(0, 50), max_size=30), st.integers(1, 60))
def test_a_split_keeps_all_rows_in_order(tokens: list[int], most: int) -> None:
    """Parts hold what they may, and joining two neighbours would be too much; only a lone row is larger."""
    rows = [Row(chat().id, each) for each in tokens]
    parts = split(rows, most)
    assert [row for part in parts for row in part] == rows
    assert all(part and (len(part) == 1 or sum(row.tokens for row in part) <= most) for part in parts)
    for one, next_one in itertools.pairwise(parts):
        assert sum(row.tokens for row in one) + next_one[0].tokens > most


async def test_no_row_is_in_two_flushes() -> None:
    """Eight writers insert and flush one user: each row in one flush, numbers without gaps, in the order of rows."""
    async with open_tables(WRITERS) as all_tables:

        async def write(tables: MemoryTables) -> list[Flush]:
            made = []
            for _ in range(6):
                await fill(tables, 3)
                made += await tables.make_flushes("ada", Reason.FULL, most_tokens=25)
            return made

        made = [flush for part in await asyncio.gather(*map(write, all_tables)) for flush in part]
        bound = [id for flush in made for id in flush.blob_ids]
        assert len(bound) == len(set(bound)) == WRITERS * 6 * 3
        assert sorted(flush.number for flush in made) == list(range(1, len(made) + 1))
        stored = {row["blob_id"]: row["flush_id"] for row in await rows_of(all_tables[0], "buffer_zone")}
        assert stored == {id: flush.id for flush in made for id in flush.blob_ids}
        assert all(flush.tokens <= 25 for flush in made)


async def test_one_buffer_is_flushed_once() -> None:
    """Of eight that find it full at the same moment one binds it, and the others find nothing."""
    async with open_tables(WRITERS) as all_tables:
        for _ in range(10):
            ids = await fill(all_tables[0], 8)
            calls = (tables.make_flushes("ada", Reason.FULL, most_tokens=1000) for tables in all_tables)
            made = [flush for part in await asyncio.gather(*calls) for flush in part]
            assert [flush.blob_ids for flush in made] == [tuple(ids)]


async def test_flushes_are_numbered_in_the_order_of_their_rows() -> None:
    """What came in while another makes flushes is numbered after them, though it is bound without seeing them."""
    async with open_tables(2) as (ours, theirs):
        async with ours._app.database() as connection, connection.transaction():
            await fill(theirs, 1)
            [first] = await ours.on(connection).make_flushes("ada", Reason.FULL, most_tokens=10)
            await fill(theirs, 1)
            racing = asyncio.create_task(theirs.make_flushes("ada", Reason.FULL, most_tokens=10))
            await _somebody_waits(connection)
        [second] = await racing
        assert (first.number, second.number) == (1, 2)
        assert not set(first.blob_ids) & set(second.blob_ids)


async def test_inserts_go_on_while_flushes_are_made() -> None:
    """Who makes flushes holds up no one who inserts."""
    async with open_tables(2) as (ours, theirs):
        await fill(ours, 1)
        async with ours._app.database() as connection, connection.transaction():
            assert len(await ours.on(connection).make_flushes("ada", Reason.FULL, most_tokens=10)) == 1
            async with asyncio.timeout(3):
                await fill(theirs, 1)


async def test_of_eight_holders_the_last_one_stores() -> None:
    """All take one flush over from each other; one commit is made, under the highest fence."""
    async with open_tables(WRITERS) as all_tables:
        [flush] = await flushes(all_tables[0])
        works = await asyncio.gather(*(held(tables, flush) for tables in all_tables))
        assert sorted(work.fence for work in works) == list(range(1, WRITERS + 1))

        async def store(tables: MemoryTables, work: Held) -> Any:
            try:
                return await tables.commit(work, told(str(work.fence), add("a", "b", "c")), keep_blobs=True)
            except LostFlushError:
                return None

        answers = await asyncio.gather(*map(store, all_tables, works))
        assert [answer for answer in answers if answer] == [Committed(flush.id, 1)]
        assert [event.event_tip for event in await all_tables[0].events("ada")] == [f"- {WRITERS}"]


async def test_one_commit_repeated_at_once_writes_once() -> None:
    """The same answer eight times, and one event."""
    async with open_tables(WRITERS) as all_tables:
        [flush] = await flushes(all_tables[0])
        work = await held(all_tables[0], flush)
        result = told("x", add("a", "b", "c"))
        answers = await asyncio.gather(*(tables.commit(work, result, keep_blobs=True) for tables in all_tables))
        assert sorted(answer.repeated for answer in answers) == [False, *[True] * (WRITERS - 1)]  # type: ignore
        assert [slot.version for slot in await all_tables[0].profile("ada")] == [1]


async def test_of_changes_of_one_version_one_is_made() -> None:
    """Seven people and a flush change a slot from version 1: one wins, the others hear of the conflict."""
    async with open_tables(WRITERS) as all_tables:
        [flush] = await flushes(all_tables[0])
        work = await held(all_tables[0], flush)
        await all_tables[0].change_profile("ada", [add("a", "b", "0"), add("c", "d", "0")])

        async def change(number: int, tables: MemoryTables) -> bool:
            changes = (ProfileChange("update", "a", "b", str(number), 1), ProfileChange("update", "c", "d", "x", 1))
            if number == 0:
                answer = await tables.commit(work, told("x", *changes), keep_blobs=True)
                return not isinstance(answer, Conflict)
            try:
                await tables.change_profile("ada", changes[:: 1 if number % 2 else -1])
            except ConflictError:
                return False
            return True

        won = await asyncio.gather(*(change(number, tables) for number, tables in enumerate(all_tables)))
        assert won.count(True) == 1
        slots = await all_tables[0].profile("ada")
        assert [slot.version for slot in slots] == [2, 2]
        assert slots[0].content == str(won.index(True))
        assert len(await all_tables[0].events("ada")) == won[0]


async def test_no_deadlock_whatever_goes_on() -> None:
    """All verbs at once on three users who come and go; what is left is whole."""
    async with open_tables(WRITERS) as all_tables:
        await asyncio.gather(*(_do_all(tables, number) for number, tables in enumerate(all_tables)))
        users = {row["id"] for row in await rows_of(all_tables[0], "users")}
        for table in ("buffer_zone", "flushes", "user_events"):
            assert {row["user_id"] for row in await rows_of(all_tables[0], table)} <= users


async def _do_all(tables: MemoryTables, number: int) -> None:
    for turn in range(8):
        user = f"u{(number + turn) % 3}"
        await tables.insert_blobs([chat(f"u{(number + turn + step) % 3}") for step in range(3)])
        for flush in await tables.make_flushes(user, Reason.FULL, most_tokens=20):
            await _work_on(tables, flush, turn)
        if turn % 5 == number % 5:
            await tables.delete_user(user)


async def _work_on(tables: MemoryTables, flush: Flush, turn: int) -> None:
    begun = await tables.begin_flush(flush.id, NO_TIME if turn % 3 == 0 else LEASE)
    await tables.release_expired(5)
    await tables.retry_failed(NO_TIME, 3, 5)
    if not isinstance(begun, Held):
        return
    if turn % 4 == 0:
        await tables.fail_flush(flush.id, "x")
    with suppress(LostFlushError):
        await tables.commit(begun, told("x", add("a", str(turn), "c")), keep_blobs=turn % 2 == 0)


async def test_notes_of_checks_are_made_once() -> None:
    """Of eight that tell of the same users one makes each note; a note taken may be made again."""
    async with open_tables(WRITERS) as all_tables:
        users = [f"u{number}" for number in range(20)]
        calls = (tables.note_checks(users[:: 1 if n % 2 else -1]) for n, tables in enumerate(all_tables))
        noted = [user for part in await asyncio.gather(*calls) for user in part]
        assert sorted(noted) == sorted(users)
        taken = await asyncio.gather(*(tables.take_check("u1") for tables in all_tables))
        assert sum(taken) == 1
        assert await all_tables[0].note_checks(["u1", "u1", "u2"]) == ["u1"]


async def test_another_programs_lock_is_passed_over() -> None:
    """A row that somebody else holds is bound later: nobody waits for it."""
    async with open_one() as tables:
        ids = await fill(tables, 3)
        async with tables._app.database() as connection, connection.transaction():
            schema = tables._app.settings.memory.schema
            await connection.execute(f'SELECT FROM "{schema}".buffer_zone WHERE blob_id = $1 FOR UPDATE', ids[1])
            async with asyncio.timeout(3):
                [flush] = await tables.make_flushes("ada", Reason.FULL, most_tokens=100)
        assert flush.blob_ids == (ids[0], ids[2])
        [flush] = await tables.make_flushes("ada", Reason.FULL, most_tokens=100)
        assert flush.blob_ids == (ids[1],)


async def test_a_user_is_deleted_in_the_order_in_which_flushes_are_worked() -> None:
    """Who deletes waits for the flush before it takes its rows: no deadlock with whoever works on it."""
    async with open_tables(2) as (ours, theirs):
        [flush] = await flushes(ours)
        schema = ours._app.settings.memory.schema
        async with ours._app.database() as connection, connection.transaction():
            await connection.execute(f'SELECT FROM "{schema}".flushes WHERE id = $1 FOR UPDATE', flush.id)
            deleting = asyncio.create_task(theirs.delete_user("ada"))
            await _somebody_waits(connection)
            await connection.execute(f'SELECT FROM "{schema}".buffer_zone FOR UPDATE NOWAIT')
        assert await deleting


async def test_who_deletes_a_user_holds_flushes_made_while_it_waited() -> None:
    """They are held before their rows are deleted, as all others are: no deadlock with whoever works on one."""
    async with open_tables(2) as (ours, theirs):
        schema = ours._app.settings.memory.schema
        await fill(ours, 1)
        async with ours._app.database() as blobs, blobs.transaction():
            await blobs.execute(f'SELECT FROM "{schema}".general_blobs FOR UPDATE')
            async with ours._app.database() as connection, connection.transaction():
                [flush] = await ours.on(connection).make_flushes("ada", Reason.FULL, most_tokens=10)
                deleting = asyncio.create_task(theirs.delete_user("ada"))
                await _somebody_waits(connection)
            await _somebody_waits(blobs)
            held = f'SELECT FROM "{schema}".flushes WHERE id = $1 FOR UPDATE SKIP LOCKED'
            assert not await blobs.fetch(held, flush.id)
        assert await deleting


async def test_a_deadlock_that_others_make_is_tried_again() -> None:
    """A program that locks in another order costs a try, and nothing is told of it."""
    async with open_tables(2) as (ours, theirs):
        ids = [await fill(ours, 1, user) for user in ("ada", "bob")]
        schema = ours._app.settings.memory.schema
        lock = f'SELECT FROM "{schema}".users WHERE id = $1 FOR UPDATE'
        async with ours._app.database() as connection, connection.transaction():
            # The other one looks for the deadlock first, and so is the one that is ended.
            await connection.execute("SET LOCAL deadlock_timeout = '1min'")
            await connection.execute(lock, "bob")
            inserting = asyncio.create_task(theirs.insert_blobs([chat("ada"), chat("bob")]))
            await _somebody_waits(connection)
            await connection.execute(lock, "ada")
        assert len(await inserting) == 2
        assert len(await rows_of(ours, "buffer_zone")) == len(ids) + 2


async def test_what_comes_in_while_its_user_is_deleted_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for the deletion and is the first of a new user, in one try."""
    monkeypatch.setattr("headrace.apps.memory.tables.intake._TRIES", 1)
    async with open_tables(2) as (ours, theirs):
        await fill(ours, 2)
        async with ours._app.database() as connection, connection.transaction():
            assert await ours.on(connection).delete_user("ada")
            inserting = asyncio.create_task(fill(theirs, 1))
            await _somebody_waits(connection)
        assert len(await inserting) == (await ours.buffer("ada")).rows == 1


async def _somebody_waits(connection: Any) -> None:
    """Wait until a transaction waits for that of `connection`."""
    waits = "SELECT count(*) FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))"
    async with asyncio.timeout(10):
        while not await connection.fetchval(waits):
            await asyncio.sleep(0.01)
