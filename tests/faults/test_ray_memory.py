"""Memory on a Ray cluster of two nodes under attack: what is remembered is what an undisturbed run remembers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace.apps.memory import means
from tests.backends.ray import RayCluster, why_not
from tests.faults.ray_memory import (
    MemorySite,
    calls_of,
    known,
    memory_site_on,
    paid_twice,
    provider_in,
    tell,
    unfinished,
)
from tests.waiting import wait_until

pytestmark = [pytest.mark.skipif(bool(why_not()), reason=why_not() or "there can be a cluster"), pytest.mark.slow]

USERS, BLOBS = 6, 12
PATIENCE = timedelta(minutes=4)


@pytest.fixture
def cluster() -> Iterator[RayCluster]:
    """Start a cluster of two nodes; the first is for drivers."""
    with RayCluster() as cluster:
        cluster.start_node(cpus=1)
        second(cluster)
        yield cluster


def second(cluster: RayCluster) -> str:
    """Start a node for handlers, and return its address."""
    return cluster.start_node("--resources", '{"second": 1}', cpus=2)


async def undisturbed(cluster: RayCluster, folder: Path) -> dict[str, Any]:
    """Return what a run on the local executor remembers."""
    folder.mkdir()
    with provider_in(cluster, folder / "calls.jsonl", 0.01) as provider:
        async with memory_site_on(cluster, folder, provider, "local") as (site, memory):
            site.start_driver()
            await tell(memory, USERS, BLOBS)
            await until_remembered(site)
            return await known(memory, USERS)


async def until_remembered(site: MemorySite) -> None:
    """Wait until nothing is left to be done."""

    async def is_over() -> bool:
        return not await unfinished(USERS)

    await wait_until(is_over, PATIENCE, message=site.logs()[-4_000:])


@pytest.mark.timeout(600)
async def test_killed_processes_nodes_and_drivers_change_nothing(cluster: RayCluster, tmp_path: Path) -> None:
    """Each is killed in mid-run: the same is remembered as locally, no answer is paid twice, nothing stays behind."""
    expected = await undisturbed(cluster, tmp_path / "local")
    assert all(one["profile"] and one["events"] for one in expected.values())
    folder, kills = tmp_path / "ray", list[float]()
    folder.mkdir()
    with provider_in(cluster, folder / "calls.jsonl", 1.0) as provider:
        async with memory_site_on(cluster, folder, provider) as (site, memory):
            driver = site.start_driver()
            await tell(memory, USERS, BLOBS)
            for kill in (kill_process, kill_node, kill_driver):
                await wait_until(is_processing, PATIENCE)
                await wait_until(lambda: cluster.pids("ray::headrace"), PATIENCE)
                # In the middle of its call of the model.
                await asyncio.sleep(0.3)
                kills.append(time.time())
                kill(cluster, site)
            assert driver.poll() is not None
            await until_remembered(site)
            assert await known(memory, USERS) == expected
            counts = await means.TABLES.counts()
            assert (counts["flushes_processing"], counts["rows_processing"], counts["flushes_failed"]) == (0, 0, 0)
    assert paid_twice(calls_of(folder / "calls.jsonl"), kills) == []


async def is_processing() -> bool:
    """Whether a flush is worked on."""
    return (await means.TABLES.counts())["flushes_processing"] > 0


def kill_process(cluster: RayCluster, _: MemorySite) -> None:
    """End the processes that run handlers."""
    # Not those that belong to a node: without them it would end, too.
    cluster.kill(cluster.pids("ray::headrace"))


def kill_node(cluster: RayCluster, _: MemorySite) -> None:
    """End the node on which handlers run; another one comes."""
    victim = cluster.nodes[-1]
    second(cluster)
    cluster.kill_node(victim)


def kill_driver(cluster: RayCluster, site: MemorySite) -> None:
    """End the process that drives the cluster; another one comes."""
    cluster.kill(cluster.pids("headrace memory run"))
    site.start_driver()
