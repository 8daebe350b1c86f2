"""The tables of memory: what goes in becomes flushes, and flushes become memory, once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from headrace import ConflictError, InvalidInputError
from headrace.apps.memory.data.events import Tag
from headrace.apps.memory.data.flushes import FlushState, Reason, flush_id
from headrace.apps.memory.data.profiles import ProfileChange
from headrace.apps.memory.data.results import FlushResult
from headrace.apps.memory.tables import Committed, Ended, NewBlob, NotYet
from tests.integration.memory_tables_world import (
    LEASE,
    add,
    chat,
    execute,
    fill,
    flushes,
    held,
    open_one,
    rows_of,
    told,
)

AT = datetime(2026, 5, 2, 9, tzinfo=UTC)


async def test_blobs_become_memory() -> None:
    """From the insert to the event: each table says what happened, and the blobs are kept."""
    async with open_one() as tables:
        ids = await fill(tables, 3)
        buffer = await tables.buffer("ada")
        assert (buffer.rows, buffer.tokens, buffer.level) == (3, 30, 0)
        [flush] = await tables.make_flushes("ada", Reason.FULL, most_tokens=100)
        assert flush.blob_ids == tuple(ids)
        assert (flush.id, flush.tokens, flush.number) == (flush_id("ada", tuple(ids)), 30, 1)
        assert (await tables.buffer("ada")).rows == 0
        work = await held(tables, flush)
        assert [blob.id for blob in work.blobs] == ids
        assert work.blobs[0].data["messages"][0]["content"] == str(ids[0])
        assert {row["status"] for row in await rows_of(tables, "buffer_zone")} == {"processing"}
        result = told("likes rye", add("interest", "bread", "rye"), tags=(Tag("mood", "glad"),))
        assert await tables.save_result(work, result) == result
        assert await tables.commit(work, result, keep_blobs=True) == Committed(flush.id, 3)
        [slot] = await tables.profile("ada")
        assert (slot.place, slot.content, slot.version, slot.update_hits) == (("interest", "bread"), "rye", 1, 0)
        [event] = await tables.events("ada", tag=Tag("mood", "glad"))
        assert (event.id, event.event_tip, event.tags) == (flush.id, "- likes rye", (Tag("mood", "glad"),))
        attributes = {"topic": "interest", "sub_topic": "bread"}
        assert event.profile_delta == ({"content": "rye", "attributes": attributes},)
        assert {row["status"] for row in await rows_of(tables, "buffer_zone")} == {"done"}
        assert len(await rows_of(tables, "general_blobs")) == 3
        assert await tables.begin_flush(flush.id, LEASE) == Ended(FlushState.DONE)
        assert await tables.load_result(flush.id) == result


async def test_a_blob_inserted_again_changes_nothing() -> None:
    """The same blob is known by its id, also once it is memory and was deleted; other content is refused whole."""
    async with open_one() as tables:
        blob, other = chat(), chat("bob")
        assert await tables.insert_blobs([blob, blob]) == [blob.id, blob.id]
        assert await tables.insert_blobs([other, blob]) == [other.id, blob.id]
        assert (await tables.buffer("ada")).rows == 1
        [flush] = await tables.make_flushes("ada", Reason.FULL, most_tokens=100)
        await tables.commit(await held(tables, flush), told("x"), keep_blobs=False)
        await tables.insert_blobs([blob])
        assert (await tables.buffer("ada")).rows == 0
        assert [row["id"] for row in await rows_of(tables, "general_blobs")] == [other.id]
        changed = NewBlob("bob", "chat", {"messages": []}, 10, other.id)
        with pytest.raises(ConflictError, match=str(other.id)):
            await tables.insert_blobs([chat("carol"), changed])
        with pytest.raises(ConflictError, match=str(blob.id)):
            await tables.insert_blobs([NewBlob("eve", "chat", blob.data, 10, blob.id)])
        assert await tables.get_user("carol") is None


async def test_only_what_becomes_memory_is_buffered() -> None:
    """Documents and pictures are kept, and wait for nothing."""
    async with open_one() as tables:
        await tables.insert_blobs([NewBlob("ada", "doc", {"text": "x"}, 5, uuid4()), chat()])
        assert len(await rows_of(tables, "general_blobs")) == 2
        assert (await tables.buffer("ada")).rows == 1


async def test_a_blob_under_the_id_of_anothers_leaves_nothing() -> None:
    """Neither a row nor a claim to what was there: that of another user is not deleted as memory of this one."""
    async with open_one() as tables:
        document = NewBlob("ada", "doc", {"text": "x"}, 5, uuid4())
        await tables.insert_blobs([document])
        with pytest.raises(ConflictError, match=str(document.id)):
            await tables.insert_blobs([chat("eve", id=document.id)])
        assert await rows_of(tables, "buffer_zone") == []
        [flush] = await flushes(tables, user_id="eve")
        await execute(tables, "UPDATE {schema}.flushes SET blob_ids = blob_ids || $1::uuid", document.id)
        await tables.commit(await held(tables, flush), told("x"), keep_blobs=False)
        assert [row["id"] for row in await rows_of(tables, "general_blobs")] == [document.id]


async def test_blobs_without_a_time_keep_the_order_of_the_list() -> None:
    """Many inserted at once were said one after another."""
    async with open_one() as tables:
        ids = await fill(tables, 50)
        [flush] = await tables.make_flushes("ada", Reason.FULL, most_tokens=1000)
        assert list(flush.blob_ids) == ids
        assert [blob.id for blob in (await held(tables, flush)).blobs] == ids


async def test_equal_times_are_told_apart_by_id() -> None:
    """However they came in, the order is the same."""
    async with open_one() as tables:
        ids = [UUID(int=number) for number in (7, 3, 5)]
        await tables.insert_blobs([chat(id=id, at=AT) for id in ids])
        early = chat(at=AT - timedelta(seconds=1))
        await tables.insert_blobs([early])
        [flush] = await tables.make_flushes("ada", Reason.FULL, most_tokens=1000)
        assert flush.blob_ids == (early.id, *sorted(ids))


async def test_an_oversize_buffer_is_split_and_nothing_is_dropped() -> None:
    """Parts in the order of time, numbered; a blob that is too large by itself is a flush of its own."""
    async with open_one() as tables:
        blobs = [chat(tokens=tokens, at=AT + timedelta(seconds=n)) for n, tokens in enumerate([40, 60, 500, 30, 30])]
        await tables.insert_blobs(list(reversed(blobs)))
        made = await tables.make_flushes("ada", Reason.EXPLICIT, most_tokens=100)
        assert [flush.tokens for flush in made] == [100, 500, 60]
        assert [flush.number for flush in made] == [1, 2, 3]
        assert [id for flush in made for id in flush.blob_ids] == [blob.id for blob in blobs]
        assert await tables.unfinished("ada") == made
        assert [flush.number for flush in await flushes(tables)] == [4]
        assert await tables.make_flushes("ada", Reason.FULL, most_tokens=100) == []


async def test_flushes_of_a_user_are_worked_one_after_another() -> None:
    """The second waits for the first, those of others do not; one that failed holds up nothing."""
    async with open_one() as tables:
        first, second, third = await flushes(tables, 3)
        [others] = await flushes(tables, user_id="bob")
        assert isinstance(await tables.begin_flush(second.id, LEASE), NotYet)
        work = await held(tables, first)
        assert isinstance(await tables.begin_flush(second.id, LEASE), NotYet)
        await held(tables, others)
        await tables.commit(work, told("x"), keep_blobs=True)
        work = await held(tables, second)
        assert await tables.fail_flush(second.id, "broken")
        assert not await tables.fail_flush(second.id, "broken")
        await held(tables, third)
        assert await tables.begin_flush(second.id, LEASE) == Ended(FlushState.FAILED)
        assert await tables.begin_flush(uuid4(), LEASE) == Ended(None)


async def test_a_flush_that_says_nothing_leaves_no_event() -> None:
    """It is done all the same."""
    async with open_one() as tables:
        [flush] = await flushes(tables)
        answer = await tables.commit(await held(tables, flush), FlushResult("en"), keep_blobs=True)
        assert answer == Committed(None, 1)
        assert await tables.events("ada") == []
        found = await tables.find_flush(flush.id)
        assert found is not None and found.state == FlushState.DONE


async def test_unstorable_characters_of_a_model_are_left_out() -> None:
    """A zero in an answer must not keep a flush from ever being stored."""
    async with open_one() as tables:
        [flush] = await flushes(tables)
        work = await held(tables, flush)
        result = told("a\x00b\ud800", add("work", "job", "mil\x00ler"), tags=(Tag("m\x00", "x"),))
        await tables.save_result(work, result)
        assert isinstance(await tables.commit(work, result, keep_blobs=True), Committed)
        assert [slot.content for slot in await tables.profile("ada")] == ["miller"]
        assert [event.event_tip for event in await tables.events("ada")] == ["- ab"]


@pytest.mark.parametrize(
    ("blob", "field"),
    [
        (NewBlob("", "chat", {}, 1, UUID(int=1)), "user_id"),
        (NewBlob("u" * 201, "chat", {}, 1, UUID(int=1)), "user_id"),
        (NewBlob("u\x00", "chat", {}, 1, UUID(int=1)), "user_id"),
        (NewBlob("u", "song", {}, 1, UUID(int=1)), "type"),
        (NewBlob("u", "chat", {"a": "\x00"}, 1, UUID(int=1)), "data"),
        (NewBlob("u", "chat", {"a": "\udc00"}, 1, UUID(int=1)), "data"),
        (NewBlob("u", "chat", {"a": float("nan")}, 1, UUID(int=1)), "data"),
        (NewBlob("u", "chat", {}, -1, UUID(int=1)), "tokens"),
        (NewBlob("u", "chat", {}, 1, UUID(int=1), datetime(2026, 5, 2)), "created_at"),
    ],
)
async def test_a_bad_blob_is_refused_by_name(blob: NewBlob, field: str) -> None:
    """Field and rule, not what the driver says."""
    async with open_one() as tables:
        with pytest.raises(InvalidInputError) as caught:
            await tables.insert_blobs([blob])
        assert caught.value.field == field


async def test_a_backslash_before_u0000_is_no_zero() -> None:
    """Text that only looks like the escape is stored as it is."""
    async with open_one() as tables:
        await tables.insert_blobs([NewBlob("u", "chat", {"a": "\\u0000"}, 1, UUID(int=1))])
        [flush] = await tables.make_flushes("u", Reason.FULL, most_tokens=10)
        assert (await held(tables, flush)).blobs[0].data == {"a": "\\u0000"}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ((add("a", "b", "c"), add("a", "b", "d")), "changes"),
        ((ProfileChange("update", "a", "b", "c", 0),), "expected_version"),
        ((ProfileChange("add", "a", "b", "c", 1),), "expected_version"),
        ((ProfileChange("update", "a", "b", None, 1),), "content"),
        ((ProfileChange("delete", "a", "b", "c", 1),), "content"),
        ((add("a", "", "c"),), "sub_topic"),
        ((add("a" * 201, "b", "c"),), "topic"),
    ],
)
async def test_changes_that_cannot_be_made_are_refused(changes: tuple[ProfileChange, ...], field: str) -> None:
    """Before anything is written."""
    async with open_one() as tables:
        [flush] = await flushes(tables)
        work = await held(tables, flush)
        with pytest.raises(InvalidInputError) as caught:
            await tables.commit(work, told("x", *changes), keep_blobs=True)
        assert caught.value.field == field
        assert await tables.events("ada") == []


async def test_what_fills_a_buffer_ends_a_flush() -> None:
    """The same blobs are the same flushes, whether one looked after each of them or once; what is short waits."""
    sizes = [30, 40, 50, 20, 90, 10, 60, 70, 5]
    made: dict[str, list[list[int]]] = {}
    async with open_one() as tables:
        for user, often in (("once", False), ("often", True)):
            made[user] = []
            for number, tokens in enumerate(sizes):
                at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=number)
                await tables.insert_blobs([NewBlob(user, "chat", {"messages": []}, tokens, uuid4(), at)])
                if often or number == len(sizes) - 1:
                    found = await tables.make_flushes(user, Reason.FULL, most_tokens=1_000, full=100)
                    made[user] += [[flush.number, flush.tokens, len(flush.blob_ids)] for flush in found]
        assert made["once"] == made["often"] == [[1, 120, 3], [2, 110, 2], [3, 140, 3]]
        assert (await tables.buffer("often")).tokens == 5
        [last] = await tables.make_flushes("often", Reason.EXPLICIT, most_tokens=1_000, full=100)
        assert last.tokens == 5
