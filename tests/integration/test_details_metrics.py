"""`/metrics` of a service of details, over HTTP, and the reference that tells of it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2

from headrace import App
from headrace.service.serving import Address, serve
from tests.integration.details_world import World, details_on
from tests.waiting import wait_until

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "metrics.md"
NAME = re.compile(r"`((?:headrace|batch|details)_[a-z_]+)")


@asynccontextmanager
async def served(app: App) -> AsyncIterator[httpx2.AsyncClient]:
    """Serve an open app on a free port of loopback while the block runs."""
    urls, stopping = list[str](), asyncio.Event()
    address = Address("127.0.0.1", 0)
    serving = asyncio.create_task(serve(app, address, worker=False, stopping=stopping, announce=urls.append))
    await wait_until(lambda: urls or serving.done())
    try:
        async with httpx2.AsyncClient(base_url=urls[0]) as client:
            yield client
    finally:
        stopping.set()
        await serving


def documented() -> set[str]:
    """Return the names of metrics in the first column of the reference's tables, as Prometheus writes them."""
    rows = [line.split("|")[1] for line in REFERENCE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return {name for row in rows for name in NAME.findall(row)}


def declared(text: str) -> set[str]:
    """Return the names of metrics that a scrape declares."""
    return set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE))


async def make(world: World) -> None:
    """Make a batch of a known type, and one of a word of somebody's own."""
    for type_ in ("skill", "ship_name"):
        _, entries = await world.make(count=3, type=type_)
        assert entries[-1].data["status"] == "completed"


async def test_a_scrape_tells_of_details(tmp_path: Path) -> None:
    """Parts, times and dead letters of batches that ended, by type; types nobody knows share a label."""
    async with details_on("memory", tmp_path) as world, served(world.app) as client:
        await make(world)
        text = (await client.get("/metrics")).text
        lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
        samples = {name: float(value) for name, _, value in lines}
        for type_ in ("skill", "other"):
            assert samples[f'batch_tasks_total{{type="{type_}",status="completed"}}'] >= 1
            assert samples[f'batch_task_duration_seconds_count{{type="{type_}"}}'] >= 1
            assert samples[f'batch_first_response_seconds_bucket{{type="{type_}",le="+Inf"}}'] == 1
            assert samples[f'batch_dead_letters_total{{type="{type_}"}}'] == 0
        assert samples['batch_queue_size{priority="5"}'] == 0
        assert "ship_name" not in text
        again = (await client.get("/metrics")).text
        assert [line for line in again.splitlines() if line.startswith("batch_t")] == [
            line for line in text.splitlines() if line.startswith("batch_t")
        ]


async def test_the_reference_and_a_scrape_name_the_same(tmp_path: Path) -> None:
    """Each metric that is told is documented, and each that is documented is told; of Ray where a queue runs there."""
    here = {name for name in documented() if not name.startswith("headrace_ray_")}
    async with details_on("memory", tmp_path) as world, served(world.app) as client:
        assert declared((await client.get("/metrics")).text) == here


async def test_an_app_without_details_tells_nothing_of_them() -> None:
    """Neither zeros nor names."""
    async with served(App("memory://")) as client:
        assert not [name for name in declared((await client.get("/metrics")).text) if name.startswith("batch_")]
