"""Several namespaces beside each other, as docs/explanation/capacity.md describes them: what holds within one alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from headrace import App, Task
from headrace.settings import load_settings
from tests.backends.postgres import empty_schema, stores_on
from tests.backends.server import shared_server


@asynccontextmanager
async def namespace(ran: list[int], name: int) -> AsyncIterator[Task[[int], int]]:
    """Open an app with a worker on a schema of its own; its one task has a cap of one."""
    async with empty_schema() as schema, stores_on(schema, None):
        environ = {"HEADRACE_URL": shared_server().dsn, "HEADRACE_QUEUE_SCHEMA": schema}
        app = App(settings=load_settings(environ=environ))

        @app.task(concurrency=1)
        async def note(number: int) -> int:
            ran.append(name)
            while len(set(ran)) < 2:  # runs until the other namespace runs one too
                await asyncio.sleep(0.01)
            return number

        async with app.worker(grace=0):
            yield note


async def test_namespaces_run_their_own_jobs_under_keys_and_caps_of_their_own() -> None:
    """The same key makes a job in each; a cap of one lets one run in each at the same time."""
    ran: list[int] = []
    async with AsyncExitStack() as stack:
        first, second = [await stack.enter_async_context(namespace(ran, name)) for name in (1, 2)]
        handles = [await task.options(key="the same").enqueue(7) for task in (first, second)]

        assert [await handle.result("20s") for handle in handles] == [7, 7]

    assert handles[0].id != handles[1].id
    assert sorted(ran) == [1, 2]
