"""Webhooks out on durable stores: what tells of an end is stored with it, once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from headrace import App
from headrace.model.job import JobState
from headrace.settings import QueueSettings
from headrace.stores.redis import RedisSite
from headrace.wiring import migrate
from tests.backends.postgres import empty_schema
from tests.backends.server import shared_server
from tests.unit.webhook_site import add_flows, receiver, sending_app
from tests.waiting import wait_until


@pytest.fixture(params=["postgres", "redis"])
async def app(request: pytest.FixtureRequest, site: RedisSite, tmp_path: Path) -> AsyncIterator[App]:
    """An app with flows on each durable store."""
    async with empty_schema() as schema:
        if request.param == "postgres":
            queue = QueueSettings(url=shared_server().dsn, schema=schema)
        else:
            queue = QueueSettings(type="redis", url=site.url, stream_prefix=site.prefix, unsafe_no_persistence=True)
        app = sending_app(queue=queue, directory=tmp_path)
        if request.param == "postgres":
            await migrate(app.settings)
        add_flows(app)
        yield app


async def test_ends_of_batches_and_runs_are_told_once(app: App) -> None:
    """A batch, runs that succeed and fail, and one that is cancelled; then nothing is left in the queue."""
    async with receiver() as found, app.worker():
        batch = await app.submit(app.find_task("double"), [1, 2], webhook=found.url)
        done = await app.start("positive", 1, webhook=found.url)
        failed = await app.start("positive", -1, webhook=found.url)
        waiting = await app.start("waiting", 1, webhook=found.url)

        async def parked() -> bool:
            return bool(await app.runtime.stores.inspect.list_jobs(state=JobState.PARKED, limit=1))

        await wait_until(parked)
        await waiting.cancel()
        await wait_until(lambda: len(found.came) >= 4)

        async def empty() -> bool:
            return not any((await app.runtime.stores.inspect.live_jobs("webhooks")).values())

        await wait_until(empty)
        told = sorted((message.document["data"]["id"], message.document["data"]["state"]) for message in found.came)
        ends = [(batch, "closed"), (done, "succeeded"), (failed, "failed"), (waiting, "cancelled")]
        assert told == sorted((str(one.id), state) for one, state in ends)
