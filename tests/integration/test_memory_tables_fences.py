"""Work on a flush: fences, leases, answers that were lost, and conflicts with a newer profile."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from headrace.apps.memory.data.flushes import FlushState, Reason
from headrace.apps.memory.data.profiles import ProfileChange
from headrace.apps.memory.errors import LostFlushError
from headrace.apps.memory.tables import Committed, Conflict, Ended, NotYet, StaleSlot
from tests.integration.memory_tables_world import (
    LEASE,
    NO_TIME,
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

OLD, NEW = told("old", add("work", "job", "old")), told("new", add("work", "job", "new"))


async def test_a_late_writer_writes_nothing() -> None:
    """Who held the flush before can neither renew nor store, before and after the newer holder is done."""
    async with open_one() as tables:
        [flush] = await flushes(tables)
        late, newer = await held(tables, flush), await held(tables, flush)
        assert newer.fence == late.fence + 1
        assert not await tables.renew(late, LEASE)
        assert await tables.renew(newer, LEASE)
        for _ in range(2):
            with pytest.raises(LostFlushError, match=str(flush.id)) as caught:
                await tables.save_result(late, OLD)
            assert not caught.value.transient
            with pytest.raises(LostFlushError):
                await tables.commit(late, OLD, keep_blobs=False)
            assert isinstance(await tables.commit(newer, NEW, keep_blobs=True), Committed)
        assert [slot.content for slot in await tables.profile("ada")] == ["new"]
        assert [event.event_tip for event in await tables.events("ada")] == ["- new"]
        assert len(await rows_of(tables, "general_blobs")) == 1


async def test_a_commit_whose_answer_was_lost_is_recognised() -> None:
    """Repeated, it says what the first said; the event, its gists and the profile are there once."""
    async with open_one() as tables:
        [flush] = await flushes(tables)
        work = await held(tables, flush)
        assert await tables.commit(work, OLD, keep_blobs=True) == Committed(flush.id, 1)
        assert await tables.commit(work, OLD, keep_blobs=True) == Committed(flush.id, 1, repeated=True)
        assert [slot.version for slot in await tables.profile("ada")] == [1]
        assert len(await rows_of(tables, "user_events")) == len(await rows_of(tables, "user_event_gists")) == 1


async def test_the_first_result_stands() -> None:
    """A second holder gets what the first saved, not what it made itself."""
    async with open_one() as tables:
        [flush] = await flushes(tables)
        first = await held(tables, flush)
        assert await tables.save_result(first, OLD) == OLD
        second = await held(tables, flush)
        assert await tables.save_result(second, NEW) == OLD
        assert await tables.load_result(flush.id) == OLD


async def test_nothing_stays_in_processing_beyond_its_lease() -> None:
    """The rows are idle again and stay bound: the same flush is taken up, and who held it has lost it."""
    async with open_one() as tables:
        [flush] = await flushes(tables)
        [alive] = await flushes(tables, user_id="bob")
        gone = await held(tables, flush, NO_TIME)
        await held(tables, alive)
        assert await tables.release_expired(10) == [flush.id]
        assert await tables.release_expired(10) == []
        statuses = {row["user_id"]: row["status"] for row in await rows_of(tables, "buffer_zone")}
        assert statuses == {"ada": "idle", "bob": "processing"}
        assert (await tables.buffer("ada")).rows == 0
        assert await tables.make_flushes("ada", Reason.IDLE, most_tokens=100) == []
        assert not await tables.renew(gone, LEASE)
        with pytest.raises(LostFlushError):
            await tables.commit(gone, OLD, keep_blobs=True)
        again = await held(tables, flush)
        assert (again.flush.id, again.fence, again.blobs) == (flush.id, 2, gone.blobs)
        assert isinstance(await tables.commit(again, NEW, keep_blobs=True), Committed)


async def test_a_renewed_lease_is_not_released() -> None:
    """A sign of life moves it on."""
    async with open_one() as tables:
        [flush] = await flushes(tables)
        work = await held(tables, flush, NO_TIME)
        assert await tables.renew(work, LEASE)
        assert await tables.release_expired(10) == []


async def test_failed_flushes_are_tried_again_some_rounds() -> None:
    """With the same rows, and before the later ones of the user; then they stay failed."""
    async with open_one() as tables:
        first, second = await flushes(tables, 2)
        for number in (1, 2, 3):
            await held(tables, first)
            assert await tables.fail_flush(first.id, "no answer")
            assert {row["status"] for row in await rows_of(tables, "buffer_zone")} == {"failed", "idle"}
            assert await tables.retry_failed(timedelta(hours=1), 3, 10) == []
            [again] = await tables.retry_failed(NO_TIME, 3, 10)
            assert (again.id, again.round, again.state) == (first.id, number, FlushState.WAITING)
            assert {row["status"] for row in await rows_of(tables, "buffer_zone")} == {"idle"}
        assert isinstance(await tables.begin_flush(second.id, LEASE), NotYet)
        assert await tables.fail_flush(first.id, "no answer")
        assert await tables.retry_failed(NO_TIME, 3, 10) == []
        [row] = [row for row in await rows_of(tables, "flushes") if row["state"] == "failed"]
        assert row["error"] == "no answer"


async def test_those_of_one_user_are_taken_up_again_however_often_they_failed() -> None:
    """And those of others are left."""
    async with open_one() as tables:
        [mine], [other] = await flushes(tables), await flushes(tables, user_id="bob")
        for number in range(1, 6):
            assert await tables.fail_flush(mine.id, "x") and (number > 1 or await tables.fail_flush(other.id, "x"))
            [again] = await tables.retry_failed(NO_TIME, None, 10, user_id="ada")
            assert (again.id, again.round, again.error) == (mine.id, number, "x")


async def test_what_was_done_long_ago_goes_and_what_became_of_it_stays() -> None:
    """Flush and batch; not the event, the profile, the messages, nor that the blob was there."""
    async with open_one() as tables:
        [old], [failed] = await flushes(tables), await flushes(tables)
        waiting = await flushes(tables, user_id="bob")
        for parts in ([old.id], [one.id for one in waiting]):
            assert await tables.make_batch(parts) is not None
        assert await tables.fail_flush(failed.id, "x")
        work = await held(tables, old)
        await tables.commit(work, told("x", add("a", "b", "c")), keep_blobs=True)
        assert await tables.prune(timedelta(hours=1), 10) == 0
        assert await tables.prune(NO_TIME, 10) == 2
        assert {row["id"] for row in await rows_of(tables, "flushes")} == {failed.id, waiting[0].id}
        [batch] = await rows_of(tables, "batches")
        assert batch["flush_ids"] == [waiting[0].id]
        assert [event.id for event in await tables.events("ada")] == [old.id]
        assert isinstance(await tables.begin_flush(old.id, LEASE), Ended)
        await tables.insert_blobs([chat("ada", id=old.blob_ids[0])])
        assert (await tables.buffer("ada")).rows == 0
        [row] = [row for row in await rows_of(tables, "buffer_zone") if row["blob_id"] == old.blob_ids[0]]
        assert row["status"] == "done"


async def test_what_was_begun_goes_on_though_an_earlier_one_is_tried_again() -> None:
    """Its next stage takes it up; the earlier one waits for it, instead of both for a lease to end."""
    async with open_one() as tables:
        first, second = await flushes(tables, 2)
        assert await tables.fail_flush(first.id, "no answer")
        await tables.save_result(await held(tables, second), OLD)
        await tables.retry_failed(NO_TIME, 3, 10)
        assert isinstance(await tables.begin_flush(first.id, LEASE), NotYet)
        assert isinstance(await tables.commit(await held(tables, second), OLD, keep_blobs=True), Committed)
        await held(tables, first)


async def test_two_flushes_of_a_user_are_never_worked_on_together() -> None:
    """One that is tried again, and a later one that begins at the same moment without seeing it."""
    async with open_tables(2) as (ours, theirs):
        first, second = await flushes(ours, 2)
        await ours.fail_flush(first.id, "x")
        async with ours._app.database() as connection, connection.transaction():
            later = await ours.on(connection).begin_flush(second.id, LEASE)
            assert len(await theirs.retry_failed(NO_TIME, 3, 10)) == 1
            racing = asyncio.create_task(theirs.begin_flush(first.id, LEASE))
            waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"
            async with asyncio.timeout(10):
                while not await connection.fetchval(waits):
                    await asyncio.sleep(0.01)
        assert isinstance(await racing, NotYet)
        assert isinstance(await ours.commit(later, NEW, keep_blobs=True), Committed)  # type: ignore[arg-type]
        await held(theirs, first)


async def test_a_conflict_costs_no_connection() -> None:
    """The one that wrote it is lent to the next."""
    async with open_one() as tables:
        work = await held(tables, (await flushes(tables))[0])
        await tables.change_profile("ada", [add("a", "b", "c")])

        async def pid() -> Any:
            async with tables._app.database() as connection:
                return await connection.fetchval("SELECT pg_backend_pid()")

        before = await pid()
        assert isinstance(await tables.commit(work, told("x", add("a", "b", "d")), keep_blobs=True), Conflict)
        assert await pid() == before


async def test_a_conflict_takes_all_back_and_names_the_slots() -> None:
    """Event, rows, blobs and the other slots are as before; merged with the newer profile it goes in."""
    async with open_one() as tables:
        [flush] = await flushes(tables)
        work = await held(tables, flush)
        await tables.change_profile("ada", [add("work", "job", "miller"), add("work", "place", "Lyon")])
        await tables.change_profile("ada", [ProfileChange("update", "work", "job", "baker", 1)])
        stale = told(
            "x",
            ProfileChange("update", "work", "job", "farmer", 1),
            ProfileChange("update", "work", "place", "Nice", 1),
            ProfileChange("delete", "home", "town", None, 4),
            add("food", "bread", "rye"),
        )
        slots = (StaleSlot("home", "town", 4, 0), StaleSlot("work", "job", 1, 2))
        before = await tables.profile("ada")
        assert await tables.commit(work, stale, keep_blobs=False) == Conflict(slots)
        assert await tables.profile("ada") == before
        assert await tables.events("ada") == []
        assert len(await rows_of(tables, "general_blobs")) == 1
        assert [row["state"] for row in await rows_of(tables, "flushes")] == ["processing"]
        assert [row["status"] for row in await rows_of(tables, "buffer_zone")] == ["processing"]
        merged = told("x", ProfileChange("update", "work", "job", "farmer", 2))
        assert isinstance(await tables.commit(work, merged, keep_blobs=False), Committed)
        assert [slot.content for slot in await tables.profile("ada")] == ["farmer", "Lyon"]
        assert await rows_of(tables, "general_blobs") == []
        assert await tables.load_result(flush.id) == merged


async def test_a_deleted_user_is_gone_while_a_flush_runs() -> None:
    """Who works on it has lost it, nothing of the user comes back, and what comes in later begins anew."""
    async with open_one() as tables:
        [flush] = await flushes(tables)
        [kept] = await flushes(tables, user_id="bob")
        work = await held(tables, flush)
        await tables.note_checks(["ada"])
        await tables.change_profile("ada", [add("work", "job", "miller")])
        assert await tables.delete_user("ada")
        assert not await tables.delete_user("ada")
        assert not await tables.renew(work, LEASE)
        assert await tables.save_summary(flush.id, "- x") == "- x"
        for store in (tables.save_result(work, OLD), tables.commit(work, OLD, keep_blobs=True)):
            with pytest.raises(LostFlushError):
                await store
        for table in ("general_blobs", "buffer_zone", "flushes", "user_profiles", "user_events", "user_event_gists"):
            assert {row["user_id"] for row in await rows_of(tables, table)} <= {"bob"}, table
        assert await rows_of(tables, "pending_checks") == []
        assert [row["id"] for row in await rows_of(tables, "flushes")] == [kept.id]
        await fill(tables, 1)
        assert [each.number for each in await tables.make_flushes("ada", Reason.FULL, most_tokens=10)] == [1]
