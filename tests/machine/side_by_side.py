"""The machine on the memory store and a durable one side by side: after every rule both read the same."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, TypeVar
from uuid import UUID

from hypothesis.stateful import invariant

from headrace.model.batch import BatchItem, BatchView
from headrace.model.job import JobView
from headrace.model.session import Role, SessionView
from headrace.model.stats import QueueStats
from headrace.ports.stores import Stores
from headrace.stores.memory import open_memory_stores
from tests.machine.core import Core
from tests.machine.twin import EVERYTHING, Twin, renamed

T = TypeVar("T")
NOTHING = QueueStats(
    name="", scheduled=0, ready=0, running=0, parked=0, succeeded=0, failed=0, cancelled=0, oldest_ready_age=None,
    rate_in=0.0, rate_out=0.0, live_workers=0, paused=False, paused_reason=None,
)  # fmt: skip


class SideBySide(Core):
    """Every verb goes to both stores: `Twin` compares the answers, `both_read_the_same` what can be read."""

    def open_stores(self) -> None:
        """Open both stores empty, under one clock."""
        self.loop = asyncio.new_event_loop()
        self.opened = AsyncExitStack()
        self.memory = open_memory_stores(self.clock)
        self.other = self.run(self.open_other())
        self.twin = Twin(self.memory, self.other)
        self.stores = self.twin.stores()
        self.compared: dict[UUID, JobView] = {}
        self.compared_batches: dict[UUID, Any] = {}

    async def open_other(self) -> Stores:
        """Open the durable store on `self.opened`."""
        raise NotImplementedError

    async def leader_there(self) -> Any:
        """Return session, term and end of the last leader of the durable store, or None."""
        raise NotImplementedError

    def close_stores(self) -> None:
        """Close what was opened and leave its place to the next example."""
        self.run(self.opened.aclose())
        self.loop.close()

    def run(self, verb: Coroutine[Any, Any, T]) -> T:
        """Run a verb on the machine's own loop."""
        return self.loop.run_until_complete(verb)

    @invariant()
    def both_read_the_same(self) -> None:
        """Compare everything that can be read: of jobs and batches that changed, also what takes a question each."""
        self.run(self._compare())

    async def _compare(self) -> None:
        one, other = self.memory.inspect, self.other.inspect
        self.same("queues", *[in_use(await read.queue_stats()) for read in (one, other)])
        self.same("sessions", by_id(await one.list_sessions()), by_id(await other.list_sessions()))
        jobs = await one.list_jobs(limit=EVERYTHING)
        there = await other.list_jobs(limit=EVERYTHING)
        self.twin.names.pair([view.id for view in jobs], [view.id for view in there])
        self.same("jobs", jobs, there)
        batches = await one.list_batches(limit=EVERYTHING)
        self.same("batches", batches, await other.list_batches(limit=EVERYTHING))
        self.same("the leader", self._leader(), await self.leader_there())
        await self._compare_changed(jobs, batches)

    async def _compare_changed(self, jobs: Sequence[JobView], batches: Sequence[BatchView]) -> None:
        touched = {view.batch_id for view in jobs if self.compared.get(view.id) != view}
        touched |= {view.batch_id for job_id, view in self.compared.items() if job_id not in {job.id for job in jobs}}
        for view in jobs:
            if self.compared.get(view.id) != view or view.state == "running":
                await self._compare_job(view.id)
        for batch in batches:
            if self.compared_batches.get(batch.id) != batch or batch.id in touched:
                await self._compare_batch(batch.id)
        self.compared = {view.id: view for view in jobs}
        self.compared_batches = {batch.id: batch for batch in batches}

    async def _compare_job(self, job_id: UUID) -> None:
        name = self.twin.names.second[job_id]
        records = await self.memory.inspect.get_attempts(job_id)
        self.same("attempts", records, await self.other.inspect.get_attempts(name))
        self.same("steps", await self.memory.jobs.load_steps(job_id), await self.other.jobs.load_steps(name))

    async def _compare_batch(self, batch_id: UUID) -> None:
        one, other = self.memory.inspect, self.other.inspect
        self.same("progress", await one.batch_progress(batch_id), await other.batch_progress(batch_id))
        self.same("items", await one.batch_args(batch_id), await other.batch_args(batch_id))
        states = [await store.batch_states(batch_id, first=0, limit=10_000) for store in (one, other)]
        self.same("states", *states)
        dead = [await store.batch_dead_letters(batch_id, limit=10_000) for store in (one, other)]
        dead[1] = renamed(dead[1], self.twin.names.first)
        self.same("dead letters", *(sorted(letters, key=lambda letter: letter.id) for letters in dead))
        here = [await read_all(store, batch_id) for store in (one, other)]
        self.same("results", *map(by_job, (here[0], renamed(here[1], self.twin.names.first))))

    def same(self, what: str, here: Any, there: Any) -> None:
        """Compare what both stores tell of something."""
        told = renamed(there, self.twin.names.first)
        if here != told:
            raise AssertionError(f"{what} differ:\n" + "\n".join(difference(here, told)))

    def _leader(self) -> Any:
        row = self.memory.jobs._state.leaders.get(Role.ENGINE)  # type: ignore[attr-defined]
        return None if row is None else (row.session, row.term, row.expires_at)


def in_use(queues: list[QueueStats]) -> list[QueueStats]:
    """Return queues without those of which a store knows nothing but that they are gated, and perhaps shows them."""
    return [queue for queue in queues if replace(queue, name="") != NOTHING]


async def read_all(inspect: Any, batch_id: UUID) -> list[BatchItem]:
    """Read the finished items of a batch in small pages, each of them once and in the order of their ends."""
    items: dict[UUID, BatchItem] = {}
    cursor = ""
    while (page := await inspect.read_items(batch_id, cursor=cursor, limit=3)).items:
        items.update((item.job_id, item) for item in page.items)
        assert page.cursor != cursor, "a page leads nowhere"
        cursor = page.cursor
    return list(items.values())


def by_job(items: list[BatchItem]) -> list[Any]:
    """Return items by job; the cursors are each store's own."""
    return sorted((item.job_id, item.index, item.status, item.result, item.error, item.cost) for item in items)


def by_id(sessions: list[SessionView]) -> list[SessionView]:
    """Return live sessions first, then by start and id: no port says which of equals comes first."""
    assert sessions == sorted(sessions, key=lambda view: (not view.alive, view.started_at)), "live ones come first"
    return sorted(sessions, key=lambda view: (not view.alive, view.started_at, view.id))


def difference(here: Any, there: Any) -> list[str]:
    """Say where two readings differ."""
    if not isinstance(here, list) or not isinstance(there, list):
        return [f"  here  {here!r}", f"  there {there!r}"]
    lines = [f"  here  {one!r}\n  there {other!r}" for one, other in zip(here, there, strict=False) if one != other]
    return [f"  {len(here)} here, {len(there)} there", *lines[:3]]
