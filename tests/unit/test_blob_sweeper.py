"""The blob sweeper: what belongs to no run goes, what may still be needed does not, in bounded steps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest

from headrace.blobs.local import LocalBlobs
from headrace.blobs.memory import MemoryBlobs
from headrace.engine.loops import blob_sweeper
from headrace.engine.loops.blob_sweeper import GRACE, BlobSweeper
from headrace.engine.loops.leadership import Leadership
from headrace.engine.values import Values
from headrace.model.errors import BlobStoreError
from headrace.model.ids import uuid7
from headrace.ports.stores import Stores
from headrace.stores.memory import open_memory_stores
from headrace.testing.clock import FakeClock
from tests.conformance.runs import new_run
from tests.waiting import wait_until

LARGE = '"' + "x" * 70_000 + '"'
SECOND = timedelta(seconds=1)


class WatchedBlobs(MemoryBlobs):
    """Counts what is listed, and can fail."""

    listed = 0
    fails = False

    async def list_blobs(self, prefix: str) -> AsyncIterator[tuple[str, datetime]]:
        """Do it, and count."""
        async for found in super().list_blobs(prefix):
            self.listed += 1
            yield found

    async def delete_blob(self, key: str) -> None:
        """Do it, or fail."""
        if self.fails:
            raise BlobStoreError
        await super().delete_blob(key)


class Swept:
    """A leader's sweeper over stores and blobs of one clock."""

    def __init__(self, clock: FakeClock, stores: Stores) -> None:
        self.clock = clock
        self.stores = stores
        self.blobs = WatchedBlobs(clock)
        self.leadership = Leadership(stores, uuid7())
        self.loop = BlobSweeper(stores.runs, self.blobs, self.leadership, clock)

    async def run_with_blob(self, *, started: bool = True) -> UUID:
        """Store a large value of a run; return the run, which exists if it is started."""
        run = new_run()
        await Values(self.blobs, self.stores.runs.store_id).store(run.id, LARGE)
        if started:
            await self.stores.runs.start_run(run)
        return run.id

    async def remove(self, run_id: UUID) -> None:
        """Let a run end and be pruned."""
        await self.stores.runs.cancel_run(run_id)
        await self.stores.runs.sweep_runs(limit=10)
        self.clock.advance(SECOND)
        assert await self.stores.runs.prune_runs(older_than=timedelta(), limit=10) == 1

    async def owners(self) -> set[str]:
        """Return the third parts of all keys."""
        return {key.split("/")[2] async for key, _ in self.blobs.list_blobs("")}


@pytest.fixture
async def swept() -> AsyncIterator[Swept]:
    """Return a leading sweeper."""
    clock = FakeClock()
    swept = Swept(clock, open_memory_stores(clock=clock))
    await swept.leadership.step()
    yield swept
    await swept.loop.stop()
    await swept.stores.close()


async def test_blobs_leave_after_their_run(swept: Swept) -> None:
    """Blobs of a run that was pruned go; those of runs that exist stay, however old."""
    kept, gone = await swept.run_with_blob(), await swept.run_with_blob()
    swept.clock.advance(2 * GRACE)
    await swept.loop.step()
    assert await swept.owners() == {str(kept), str(gone)}
    await swept.remove(gone)
    await swept.loop.step()
    assert await swept.owners() == {str(kept)}


async def test_a_blob_may_be_there_before_its_run(swept: Swept) -> None:
    """Within an hour the blob of an unknown run stays: its run may be about to start. Afterwards it goes."""
    early = await swept.run_with_blob(started=False)
    swept.clock.advance(GRACE)
    await swept.loop.step()
    assert await swept.owners() == {str(early)}
    swept.clock.advance(SECOND)
    await swept.loop.step()
    assert await swept.owners() == set()


async def test_blobs_of_others_stay(swept: Swept) -> None:
    """Only what lies below the id of the store, `runs/` and the id of a run is ours to remove."""
    own = await swept.stores.runs.store_id()
    keys = {"other/1/a", f"runs/{uuid7()}/a", f"{own}/{uuid7()}/a", f"{own}/runs/notes/a", f"{own}/runs/alone"}
    for key in keys:
        await swept.blobs.put_blob(key, b"x")
    swept.clock.advance(2 * GRACE)
    await swept.loop.step()
    assert {key async for key, _ in swept.blobs.list_blobs("")} == keys


async def test_stores_that_share_a_storage_leave_each_others_blobs_alone(swept: Swept) -> None:
    """A run that only the other store knows keeps its blobs; not even looked at are they."""
    other = open_memory_stores(clock=swept.clock)
    run = new_run()
    stored = await Values(swept.blobs, other.runs.store_id).store(run.id, LARGE)
    await other.runs.start_run(run)
    swept.clock.advance(2 * GRACE)
    await swept.loop.step()
    assert swept.blobs.listed == 0
    assert await Values(swept.blobs, swept.stores.runs.store_id).load(stored) == "x" * 70_000
    await other.close()


async def test_only_the_leader_sweeps(swept: Swept) -> None:
    """A process that does not lead looks at nothing."""
    orphan = await swept.run_with_blob(started=False)
    swept.clock.advance(2 * GRACE)
    await swept.leadership.resign()
    await swept.loop.step()
    assert swept.blobs.listed == 0
    assert await swept.owners() == {str(orphan)}


async def test_a_step_is_bounded_and_a_pass_complete(swept: Swept, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step looks at one slice and goes on where the last ended: blobs that stay do not hide those behind them."""
    monkeypatch.setattr(blob_sweeper, "SLICE", 10)
    kept = {str(await swept.run_with_blob()) for _ in range(25)}
    for _ in range(4):
        await swept.run_with_blob(started=False)
    swept.clock.advance(2 * GRACE)
    for looked in (10, 20, 29):
        await swept.loop.step()
        assert swept.blobs.listed == looked
    assert await swept.owners() == kept


async def test_a_pass_runs_on_without_waiting_for_the_interval(swept: Swept, monkeypatch: pytest.MonkeyPatch) -> None:
    """While slices are full the next step comes at once."""
    monkeypatch.setattr(blob_sweeper, "SLICE", 2)
    for _ in range(9):
        await swept.run_with_blob(started=False)
    swept.clock.advance(2 * GRACE)
    swept.loop.start()

    async def all_gone() -> bool:
        return not await swept.owners()

    await wait_until(all_gone)


async def test_after_a_failure_a_new_pass_begins(swept: Swept, monkeypatch: pytest.MonkeyPatch) -> None:
    """A storage that fails in the middle costs nothing but time: what was left is found again."""
    monkeypatch.setattr(blob_sweeper, "SLICE", 2)
    for _ in range(4):
        await swept.run_with_blob(started=False)
    swept.clock.advance(2 * GRACE)
    swept.blobs.fails = True
    with pytest.raises(BlobStoreError):
        await swept.loop.step()
    swept.blobs.fails = False
    for _ in range(3):
        await swept.loop.step()
    assert await swept.owners() == set()


async def test_a_pass_over_a_folder_can_be_left(swept: Swept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A listing that is read by threads is left in the middle when the process stops, and nothing hangs."""
    monkeypatch.setattr(blob_sweeper, "SLICE", 1)
    blobs = LocalBlobs(tmp_path)
    for number in range(3):
        await blobs.put_blob(f"{await swept.stores.runs.store_id()}/runs/{uuid7()}/{number}", b"x")
    loop = BlobSweeper(swept.stores.runs, blobs, swept.leadership, swept.clock)
    await loop.step()
    async with asyncio.timeout(5):
        await loop.stop()
