"""An app whose agents and caches are on a Ray cluster in tests. What they do is noted in a file, one JSON line each."""

from __future__ import annotations

import asyncio
import os

from headrace import App
from headrace.events import Agent, AgentContext, Event
from tests.faults.farm_tasks import note

TYPE = "Farm.Number.Sent"
BOUNDS = {"entries": 2, "bytes": 1_000, "ttl": "10m"}

app = App()
app.works_runs = True
counter = Agent(app, "counter", concurrency=4)


@counter.on(TYPE)
async def count(event: Event, ctx: AgentContext) -> None:
    """Note that it began, and let it be counted once."""
    note("handled", event.payload["number"])
    await asyncio.sleep(0.05)
    ctx.enqueue(counted, event.payload["number"])


@app.task
async def counted(number: int) -> None:
    """Note that it was counted."""
    note("counted", number)


@app.task
async def put(key: str, text: str) -> int:
    """Keep a text in the cache of the cluster."""
    await app.cache("shared", **BOUNDS).put(key, text)
    return os.getpid()


@app.task
async def get(key: str) -> tuple[int, str | None]:
    """Return which process has found what."""
    await asyncio.sleep(0.2)
    return os.getpid(), await app.cache("shared", **BOUNDS).get(key)


@app.task
async def figures() -> dict[str, float]:
    """Return what the cache says of itself."""
    stats = await app.cache("shared", **BOUNDS).stats()
    return {"entries": stats.entries, "hits": stats.hits, "misses": stats.misses, "evicted": stats.evicted}
