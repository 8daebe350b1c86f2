"""Elastic slots on PostgreSQL, in real time, with a model that has a quota: grow, shrink, and hold where it binds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from headrace import App, Task
from headrace.engine.slot_exposition import expose_slots
from headrace.engine.worker import Worker
from headrace.engine.worker_queries import list_workers, worker_document
from headrace.settings import QueueSettings, load_settings
from headrace.testing.provider import Latency, Quota, ScriptedProvider
from tests.backends.postgres import empty_schema, stores_on
from tests.backends.server import shared_server
from tests.unit.engine_app import QUICK
from tests.waiting import wait_until

INTERVAL = timedelta(seconds=0.3)
SLOTS = {"min_slots": 4, "max_slots": 30, "start_slots": 8, "grow_above": 60, "shrink_below": 10}


@dataclass
class World:
    """A worker of one elastic queue, and what it is asked to do."""

    app: App
    worker: Worker
    rest: Task[[int], None]
    ask: Task[[int], None]
    answered: list[int] = field(default_factory=list)

    @property
    def size(self) -> int:
        """The slots of now; where no session is, those of before."""
        shift = self.worker.session
        return 0 if shift is None else shift.queues["work"]

    async def until(self, size: int, seconds: int = 30) -> None:
        """Wait for a size."""
        await wait_until(lambda: self.size == size, timedelta(seconds=seconds), message=f"{size} slots")


@asynccontextmanager
async def world(model: ScriptedProvider) -> AsyncIterator[World]:
    """Open a world on an empty schema; its model has a quota of 10 calls a second, of which it knows."""
    async with empty_schema() as schema, stores_on(schema, None):
        llm = load_settings(environ={**model.environment, "HEADRACE_LLM_REQUESTS_PER_MINUTE": "600"}).llm
        queue = QueueSettings(type="postgres", url=shared_server().dsn, schema=schema)
        worker = replace(QUICK.worker, resize_interval=INTERVAL)
        app = App(settings=replace(QUICK, queue=queue, worker=worker, llm=llm))
        app.queue("work", **SLOTS)  # type: ignore[arg-type]
        answered: list[int] = []

        @app.task(queue="work")
        async def rest(number: int) -> None:
            await asyncio.sleep(0.1)

        @app.task(queue="work")
        async def ask(number: int) -> None:
            await app.llm.complete(f"Number {number}?", max_tokens=5)
            answered.append(number)

        async with app.worker(queues={"work": 10}) as opened:
            yield World(app, opened, rest, ask, answered)


async def test_slots_follow_a_burst(caplog: pytest.LogCaptureFixture) -> None:
    """Up to the most, and back to the fewest; the log and the figures of the session tell of it."""
    caplog.set_level(logging.INFO, "headrace.slots")
    async with ScriptedProvider(answer=lambda _: "yes") as model, world(model) as one:
        await one.app.submit(one.rest, range(2_000))
        await one.until(30)
        await one.until(4)
        stores = one.app.runtime.stores

        async def told() -> bool:
            _, [session] = await list_workers(stores)
            row = worker_document(session, None)["slots"]["work"]
            return (row["size"], row["min"], row["max"]) == (4, 4, 30)

        await wait_until(told, message="the heartbeat to tell of the size")
        figures = expose_slots((await list_workers(stores))[1])
        assert 'headrace_queue_slots{queue="work"} 4' in figures
        assert 'headrace_queue_slots_max{queue="work"} 30' in figures
    assert "queue work: slots grown from 8 to 12" in caplog.text
    # To 21, or to what was used since the look before, where that is more.
    assert "queue work: slots shrunk from 30 to " in caplog.text


async def test_slots_do_not_grow_where_the_quota_binds(caplog: pytest.LogCaptureFixture) -> None:
    """Hundreds of calls at 10 a second: the slots do not grow, and it is told why."""
    caplog.set_level(logging.INFO, "headrace.slots")
    quota = Quota(requests_per_minute=600)
    async with (
        ScriptedProvider(answer=lambda _: "yes", quota=quota, latency=Latency(timedelta(seconds=0.05))) as model,
        world(model) as one,
    ):
        # Before: connecting takes longer than a few of these looks, and is no wait for a quota.
        await one.app.llm.complete("Are you there?", max_tokens=5)
        await one.app.submit(one.ask, range(500))
        await wait_until(lambda: len(one.answered) >= 60, timedelta(seconds=40), message="sixty answers")
        assert one.size <= 8
    said = [record.getMessage() for record in caplog.records]
    assert not [line for line in said if "grown" in line]
    assert any("by quota or budget of a model" in line for line in said)
