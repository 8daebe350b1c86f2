"""What decides where caches and agents are: in this process, or in actors of a cluster."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from headrace.model.cache import CacheBounds
from headrace.model.errors import ConfigError
from headrace.settings import Settings, load_settings
from headrace.wiring.caches import RayCache, open_caches
from headrace.wiring.events import _parts_of_worker
from headrace.wiring.ray_agents import AgentsLoop, keeps_agents
from tests.waiting import wait_until

BOUNDS = CacheBounds(2, 1_000, timedelta(minutes=1))


def settings(**environ: str) -> Settings:
    """Settings by their variables, without the prefix."""
    return load_settings(environ={f"HEADRACE_{name}": value for name, value in environ.items()})


async def test_a_process_of_no_cluster_has_a_cache_of_its_own() -> None:
    """Also where the settings say that queues run on Ray: not every process of the app drives a cluster."""
    caches = open_caches(settings(WORKER_EXECUTOR="ray"))
    cache = caches.named("c", BOUNDS).shared
    assert isinstance(cache, RayCache)
    for number in range(3):
        await cache.put(f"k{number}", str(number))
    assert [await cache.get(f"k{number}") for number in range(3)] == [None, "1", "2"]
    assert (await cache.stats()).evicted == 1
    await cache.clear()
    assert await cache.get("k2") is None
    await caches.close()


def test_without_ray_no_cache_asks_for_it() -> None:
    """As most do."""
    assert not isinstance(open_caches(settings()).named("c", BOUNDS).shared, RayCache)


def test_workers_leave_agents_to_the_actor_where_that_is_asked() -> None:
    """Unless they would run none anyway; a worker that joins no cluster cannot."""
    asked = settings(WORKER_EXECUTOR="ray", RAY_AGENTS="true")
    assert keeps_agents(asked)
    assert _parts_of_worker(asked).agents == ()
    assert _parts_of_worker(settings(WORKER_EXECUTOR="ray")).agents is None
    assert not keeps_agents(settings(WORKER_EXECUTOR="ray"))
    assert not keeps_agents(settings(RAY_AGENTS="true", WORKER_AGENTS_ENABLED="false"))
    with pytest.raises(ConfigError, match='executor = "ray" for a queue'):
        keeps_agents(settings(RAY_AGENTS="true"))


class Keeper:
    """Keeps an actor that is made up."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def keep(self) -> None:
        """Note it."""
        self.said.append("keep")

    def stop(self, grace: float) -> None:
        """Note it."""
        self.said.append(f"stop {grace}")


async def test_who_keeps_the_actor_may_stop_twice_and_begin_again() -> None:
    """As all duties may; each time at once."""
    keeper = Keeper()
    loop = AgentsLoop(keeper, timedelta(seconds=7))
    for _ in range(2):
        keeper.said.clear()
        loop.start()
        await wait_until(lambda: keeper.said)
        async with asyncio.timeout(10):
            await loop.stop()
            await loop.stop()
        assert keeper.said == ["keep", "stop 7.0", "stop 7.0"]
