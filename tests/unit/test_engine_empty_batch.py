"""A batch without items: closed when it is created, its callback picked up at once."""

from __future__ import annotations

import asyncio

from headrace.engine.batches import Batches
from headrace.model.batch import NewBatch
from headrace.model.job import JobSpec
from headrace.stores.memory import open_memory_stores


async def test_the_callback_of_an_empty_batch_is_hinted() -> None:
    """Submitting no items hints the queue of the callback, which is ready by then."""
    stores = open_memory_stores()
    heard: asyncio.Queue[str] = asyncio.Queue()
    stop = await stores.notifier.subscribe(heard.put_nowait)
    await Batches(stores).submit(NewBatch(JobSpec("work"), on_close=JobSpec("report", "reports")), [])

    async with asyncio.timeout(5):
        while await heard.get() != "queue:reports":
            pass
    [callback] = await stores.inspect.list_jobs(queue="reports")
    assert callback.task == "report"
    stop()
