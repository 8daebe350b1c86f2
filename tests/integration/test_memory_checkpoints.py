"""Checkpoints of memory and what is submitted again, on the tables themselves."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.apps.memory.checkpoints import FEED, checkpoint, last_checkpoint
from headrace.apps.memory.data.results import FlushResult
from headrace.apps.memory.figures import memory_figures
from headrace.apps.memory.restoring import restore


@pytest.fixture
def world() -> Any:
    """What opens the tables of memory for tests."""
    return pytest.importorskip("tests.integration.memory_tables_world", exc_type=ImportError)


async def finish(world: Any, tables: Any, flush: Any) -> None:
    """Work on a flush until it is stored."""
    held = await world.held(tables, flush)
    await tables.commit(held, await tables.save_result(held, FlushResult("en")), keep_blobs=True)


async def test_a_restore_submits_what_is_unfinished_and_nothing_else(world: Any) -> None:
    """Some flushes are stored, one was being worked on, others wait, and messages lie in a buffer: another process
    finds just these, the same again, and nothing once they are stored; checkpoints say so."""
    async with world.open_tables(2) as (tables, other):
        ada = await world.flushes(tables, 3)
        [bob] = await world.flushes(tables, 1, "bob")
        [cid] = await world.flushes(tables, 1, "cid")
        await world.fill(tables, 2, "dan", tokens=7)
        await finish(world, tables, ada[0])
        await finish(world, tables, cid)
        await world.held(tables, ada[1])

        found = await restore(other)
        assert {flush.id for flush in found.first} == {ada[1].id, bob.id}
        assert [flush.id for flush in found.later] == [ada[2].id]
        assert found.users == ("dan",)
        assert await restore(other) == found

        app = other._app
        point = await checkpoint(app, other)
        assert set(point.completed_tasks) == {str(ada[0].id), str(cid.id)}
        assert set(point.pending_tasks) == {str(ada[1].id), str(ada[2].id), str(bob.id)}
        assert (point.state, point.user_buffers) == ("running", {"dan": 14})
        # It is kept where others see it, once for its time.
        await checkpoint(tables._app, tables)
        assert await tables._app.feed(FEED).end() in (1, 2)
        last = await last_checkpoint(tables._app)
        assert last is not None
        assert last.completed_tasks == point.completed_tasks
        counts = (await memory_figures(app, other)).counts
        assert (counts["flushes_waiting"], counts["flushes_processing"], counts["rows_buffered"]) == (2, 1, 2)

        for flush in (ada[1], ada[2], bob):
            await finish(world, tables, flush)
        after = await restore(other)
        assert (after.first, after.later, after.users) == ((), (), ("dan",))
