"""What is read and shared: profiles, search, buffers that are idle, batches, counts."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from headrace import ConflictError, InvalidInputError, NotFoundError
from headrace.apps.memory.data.events import Tag
from headrace.apps.memory.data.flushes import FlushState, Reason
from headrace.apps.memory.data.profiles import ProfileChange
from headrace.apps.memory.data.results import FlushResult
from headrace.apps.memory.tables import MemoryTables, NewBlob
from tests.integration.memory_tables_world import (
    LEASE,
    NO_TIME,
    add,
    execute,
    fill,
    flushes,
    held,
    open_one,
    open_tables,
    rows_of,
    told,
)

HOUR = timedelta(hours=1)
#: What would be an operator, an end of a string or too long for the parser, if the query were no plain text.
HOSTILE = [
    "rye & bread",
    "rye |",
    "!rye",
    "rye:*",
    "rye <-> ",
    "(rye",
    "'rye' ''",
    "rye\\",
    '"rye',
    "rye\x00bread",
    "rye\ud800",
    "-rye",
    "rye $1 %(words)s {schema}",
    "rye " + "x" * 100_000,
    "rye " + "茶" * 5_000,
]


async def tell(tables: MemoryTables, *lines: str, user_id: str = "ada") -> None:
    """Store an event of so many gists."""
    [flush] = await flushes(tables, user_id=user_id)
    result = FlushResult("en", "\n".join(f"- {line}" for line in lines))
    await tables.commit(await held(tables, flush), result, keep_blobs=True)


async def found(tables: MemoryTables, query: str, user_id: str = "ada") -> list[str]:
    """Return the gists found, best first."""
    return [each.gist.content for each in await tables.search(user_id, query)]


async def test_search_finds_stems_and_ranks_by_words() -> None:
    """Any word will do and more are better; words that tell nothing find nothing; nobody else's gists are found."""
    async with open_one() as tables:
        await tell(tables, "moved to Lyon with two cats", "likes baking rye bread", "a cat died")
        await tell(tables, "likes rye bread too", user_id="bob")
        assert await found(tables, "Where does she bake bread?") == ["likes baking rye bread"]
        assert await found(tables, "CATS moving lyon") == ["moved to Lyon with two cats", "a cat died"]
        assert await found(tables, "what is the") == []
        assert await found(tables, "") == []
        assert await found(tables, "rye", user_id="nobody") == []
        assert len(await tables.search("ada", "cat rye", limit=2)) == 2
        [best, *_] = await tables.search("ada", "cats Lyon")
        assert (best.gist.number, best.score > 0) == (0, True)


async def test_search_finds_chinese() -> None:
    """By neighbours, without spaces, mixed with English, full-width letters, and by one character alone."""
    async with open_one() as tables:
        await tell(tables, "她喜欢喝绿茶 // info", "在里昂的面包店工作", "喜欢 Python 编程", "住在北京")
        assert await found(tables, "她平时喝绿茶吗") == ["她喜欢喝绿茶 // info"]
        assert (await found(tables, "面包店在哪里"))[0] == "在里昂的面包店工作"
        assert await found(tables, "Ｐｙｔｈｏｎ") == ["喜欢 Python 编程"]
        assert await found(tables, "茶") == ["她喜欢喝绿茶 // info"]
        assert await found(tables, "京北") == []


@pytest.mark.parametrize("query", HOSTILE)
async def test_a_query_is_plain_text(query: str) -> None:
    """Nothing in it is an operator or an error."""
    async with open_one() as tables:
        await tell(tables, "likes rye", "likes nothing")
        assert await found(tables, query) == ["likes rye"]


async def test_a_slot_that_is_added_again_goes_on_with_its_versions() -> None:
    """A change made from before its deletion is not taken for one of what is there now."""
    async with open_one() as tables:
        await tables.put_user("ada")
        await tables.change_profile("ada", [add("work", "job", "miller")])
        assert await tables.change_profile("ada", [ProfileChange("delete", "work", "job", None, 1)]) == []
        with pytest.raises(ConflictError, match="work/job has version 0, not 2"):
            await tables.change_profile("ada", [ProfileChange("update", "work", "job", "x", 2)])
        [slot] = await tables.change_profile("ada", [add("work", "job", "baker")])
        assert (slot.content, slot.version, slot.update_hits) == ("baker", 3, 0)
        with pytest.raises(ConflictError, match="work/job has version 3, not 1"):
            await tables.change_profile(
                "ada", [ProfileChange("update", "work", "job", "farmer", 1), add("a", "b", "c")]
            )
        [slot] = await tables.change_profile("ada", [ProfileChange("update", "work", "job", "x", 3)])
        assert (slot.content, slot.version, slot.update_hits) == ("x", 4, 1)
        with pytest.raises(ConflictError, match="work/job has version 4, not 0"):
            await tables.change_profile("ada", [add("work", "job", "y")])
        with pytest.raises(NotFoundError, match="no user bob"):
            await tables.change_profile("bob", [add("work", "job", "y")])


async def test_users_have_a_level_and_a_language() -> None:
    """Both are checked, and may be changed."""
    async with open_one() as tables:
        assert await tables.get_user("ada") is None
        await tables.put_user("ada", level=3, language="zh")
        user = await tables.get_user("ada")
        assert user is not None
        assert (user.level, user.language) == (3, "zh")
        await fill(tables, 1)
        assert (await tables.buffer("ada")).level == 3
        with pytest.raises(InvalidInputError, match="level"):
            await tables.put_user("ada", level=-1)
        with pytest.raises(InvalidInputError, match="from 0 to 10"):
            await tables.put_user("ada", level=11)
        with pytest.raises(InvalidInputError, match="language"):
            await tables.put_user("ada", language="fr")


async def test_buffers_into_which_nothing_comes_are_named() -> None:
    """By when the newest row came in, not by what was said when: once each, and not what is bound."""
    async with open_one() as tables:
        for user in ("old", "fresh", "mixed", "bound"):
            await fill(tables, 2, user)
        await tables.make_flushes("bound", Reason.FULL, most_tokens=100)
        back = "UPDATE {schema}.buffer_zone SET updated_at = now() - $1::interval WHERE user_id = $2"
        for user, ago in (("old", 3 * HOUR), ("mixed", 2 * HOUR), ("bound", 2 * HOUR)):
            await execute(tables, back, ago, user)
        await execute(tables, "UPDATE {schema}.buffer_zone SET created_at = now() - interval '9 days'")
        assert await tables.idle_users(HOUR, 10) == ["old", "mixed"]
        assert await tables.idle_users(HOUR, 1) == ["old"]
        await fill(tables, 1, "mixed")
        assert await tables.idle_users(HOUR, 10) == ["old"]
        assert await tables.idle_users(NO_TIME, 10) == ["old", "fresh", "mixed"]
        buffer = await tables.buffer("mixed")
        assert buffer.oldest_at is not None and buffer.newest_at is not None
        assert buffer.newest_at - buffer.oldest_at >= 2 * HOUR
        empty = await tables.buffer("bound")
        assert (empty.rows, empty.tokens, empty.oldest_at) == (0, 0, None)


async def test_events_are_read_newest_first_in_pages() -> None:
    """Before an instant, and by tag."""
    async with open_one() as tables:
        for number in range(3):
            [flush] = await flushes(tables)
            tags = (Tag("n", str(number)),)
            await tables.commit(await held(tables, flush), told(str(number), tags=tags), keep_blobs=True)
        first, second = await tables.events("ada", limit=2)
        assert (first.event_tip, second.event_tip) == ("- 2", "- 1")
        [last] = await tables.events("ada", before=second.created_at)
        assert last.event_tip == "- 0"
        assert [event.event_tip for event in await tables.events("ada", tag=Tag("n", "1"))] == ["- 1"]
        assert await tables.events("ada", tag=Tag("1", "n")) == []


async def test_flushes_are_listed() -> None:
    """Of all or of a user, of a state or all, newest first."""
    async with open_one() as tables:
        one, two = await flushes(tables, 2)
        [other] = await flushes(tables, user_id="bob")
        await tables.fail_flush(one.id, "x")
        assert [flush.id for flush in await tables.list_flushes("ada")] == [two.id, one.id]
        assert [flush.id for flush in await tables.list_flushes("ada", FlushState.FAILED)] == [one.id]
        assert [flush.id for flush in await tables.list_flushes(state=FlushState.FAILED)] == [one.id]
        assert [flush.id for flush in await tables.list_flushes(limit=1)] == [other.id]
        assert len(await tables.list_flushes()) == 3


async def test_what_waits_is_told_apart_by_language() -> None:
    """By the first messages, where nothing is noted of the user."""
    async with open_one() as tables:
        said = {"anna": "I moved to Lyon, and 北京 was nice", "wei": "我叫王伟，我住在北京"}
        for user, text in said.items():
            data = {"messages": [{"role": "user", "content": text}]}
            await tables.insert_blobs([NewBlob(user, "chat", data, 9, uuid4())])
            await tables.make_flushes(user, Reason.IDLE, most_tokens=100)
        found = {one.flush.user_id: one.language for one in await tables.waiting_unbatched(10)}
        assert found == {"anna": "en", "wei": "zh"}


async def test_what_is_large_or_new_is_no_company() -> None:
    """However much of it there is: it takes no place of what may be summarised together."""
    async with open_one() as tables:
        for user in ("large", "tried", "small"):
            await fill(tables, 1, user, tokens=900 if user == "large" else 10)
            await tables.make_flushes(user, Reason.IDLE, most_tokens=1_000)
        [tried] = await tables.unfinished("tried")
        await tables.fail_flush(tried.id, "x")
        await tables.retry_failed(timedelta(), 3, 10)
        [found] = await tables.waiting_unbatched(1, most_tokens=100)
        assert found.flush.user_id == "small"
        assert await tables.waiting_unbatched(10, most_tokens=100, waited=timedelta(hours=1)) == []


async def test_how_calls_went_is_known_to_all() -> None:
    """Those of the last minute that brought something, whichever process made them."""
    async with open_tables(2) as (one, other):
        assert (await other.pace()).latency_ms is None
        for user, took in (("a", 2_000.0), ("b", 4_000.0), ("c", None)):
            [flush] = await flushes(one, user_id=user)
            batch = await one.make_batch([flush.id])
            assert batch is not None
            assert await one.end_batch(batch, called_ms=took) == [user]
            assert await one.end_batch(batch, called_ms=9_000.0) == [user]
        pace = await other.pace()
        assert pace.latency_ms == 3_000.0


async def test_a_batch_takes_what_nobody_works_on() -> None:
    """Once each and in the order given; flushes that were begun, ended, batched or summarised are left out."""
    async with open_one() as tables:
        await tables.put_user("b", level=4, language="zh")
        made = {user: (await flushes(tables, user_id=user))[0] for user in "abcdef"}
        [explicit] = await flushes(tables, user_id="x", reason=Reason.EXPLICIT)
        await held(tables, made["c"])
        await tables.fail_flush(made["d"].id, "x")
        assert await tables.save_summary(made["e"].id, "- mine") == "- mine"
        waiting = await tables.waiting_unbatched(10)
        assert [(each.flush.user_id, each.level, each.language) for each in waiting] == [
            ("a", 0, "en"),
            ("b", 4, "zh"),
            ("f", 0, "en"),
        ]
        assert explicit.id not in {each.flush.id for each in waiting}
        batch = await tables.make_batch([made[user].id for user in "bacde"])
        assert batch is not None
        assert await tables.make_batch([made[user].id for user in "ab"]) is None
        loaded = await tables.load_batch(batch)
        assert [(flush.user_id, tuple(blob.id for blob in blobs)) for flush, blobs in loaded] == [
            ("b", made["b"].blob_ids),
            ("a", made["a"].blob_ids),
        ]
        assert [each.flush.user_id for each in await tables.waiting_unbatched(10)] == ["f"]


async def test_a_batch_that_nobody_asks_for_is_found_again() -> None:
    """As long as a flush of it waits without a summary; the first summary stands."""
    async with open_one() as tables:
        [one], [two] = await flushes(tables, user_id="a"), await flushes(tables, user_id="b")
        batch = await tables.make_batch([one.id, two.id])
        assert await tables.stale_batches(HOUR, 10) == []
        assert await tables.stale_batches(NO_TIME, 10) == [batch]
        assert await tables.load_summary(one.id) is None
        assert await tables.save_summary(one.id, "") == ""
        assert await tables.save_summary(one.id, "- later") == ""
        assert await tables.load_summary(one.id) == ""
        assert await tables.stale_batches(NO_TIME, 10) == [batch]
        await tables.fail_flush(two.id, "x")
        assert await tables.stale_batches(NO_TIME, 10) == []


async def test_a_batch_whose_call_is_over_is_not_looked_for() -> None:
    """Whose flushes wait for their turn, and ask for themselves then."""
    async with open_one() as tables:
        _, later = await flushes(tables, 2)
        batch = await tables.make_batch([later.id])
        assert batch is not None
        assert await tables.end_batch(batch) == ["ada"]
        assert await tables.stale_batches(NO_TIME, 10) == []


async def test_a_batch_and_its_job_are_one() -> None:
    """On the caller's connection the verbs are part of its transaction."""
    async with open_one() as tables:
        [flush] = await flushes(tables)
        with pytest.raises(RuntimeError, match="no job"):
            async with tables._app.database() as connection, tables._app.transaction(connection):
                assert await tables.on(connection).make_batch([flush.id]) is not None
                raise RuntimeError("no job")
        assert [each.flush.id for each in await tables.waiting_unbatched(10)] == [flush.id]
        assert await rows_of(tables, "batches") == []


async def test_counts_are_of_what_is_to_be_done() -> None:
    """Rows by status and flushes by state, without those that are done."""
    async with open_one() as tables:
        done, failed, working, waiting = await flushes(tables, 8, most=20)
        await fill(tables, 3)
        await tables.commit(await held(tables, done), told("x"), keep_blobs=True)
        await tables.fail_flush(failed.id, "x")
        await tables.begin_flush(working.id, LEASE)
        assert await tables.counts() == {
            "flushes_waiting": 1,
            "flushes_processing": 1,
            "flushes_failed": 1,
            "rows_idle": 3 + len(waiting.blob_ids),
            "rows_buffered": 3,
            "rows_processing": 2,
            "rows_failed": 2,
        }
        found = [row["status"] for row in await rows_of(tables, "buffer_zone")]
        assert sorted(found) == sorted(["done"] * 2 + ["failed"] * 2 + ["processing"] * 2 + ["idle"] * 5)
