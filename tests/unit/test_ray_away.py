"""The Ray executor while the cluster, or the store, is away: nothing else is begun, nothing known is forgotten."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import ray
from ray import exceptions

from headrace.executors.ray import agents_actor, watch
from headrace.executors.ray import cluster as clusters
from headrace.executors.ray import executor as executing
from headrace.executors.ray.cluster import Cluster as RealCluster
from headrace.executors.ray.fitting import Node
from headrace.executors.ray.site import RaySite
from headrace.model.errors import ExecutorLostError, StoreUnavailableError
from headrace.model.farm import ENDED
from headrace.ports.wire import encode_completion
from headrace.wiring.ray_agents import AgentsLoop
from tests.unit.ray_parts import NODE, Site, done, site_of
from tests.unit.test_celery_watch import ended
from tests.waiting import wait_until

NOWHERE = RaySite("127.0.0.1:1", "headrace", {}, "entry", "luggage")


@pytest.fixture
async def site(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    """Have one."""
    async with site_of(monkeypatch) as site:
        yield site


@pytest.fixture
def inits(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Note with what Ray is begun, and begin none."""
    noted: list[Any] = []

    def init(*_: Any, **given: Any) -> None:
        noted.append(given)
        raise RuntimeError("a cluster of its own")

    monkeypatch.setattr(ray, "init", init)
    return noted


def fail_once(monkeypatch: pytest.MonkeyPatch, site: Site, verb: str, about: Callable[..., bool]) -> list[str]:
    """Let the store be away for the first call of a verb that is about something; return what notes that."""
    real, failed = getattr(site.steps, verb), list[str]()

    async def call(*given: Any, **named: Any) -> Any:
        if not failed and about(*given, **named):
            failed.append(verb)
            raise StoreUnavailableError("failover")
        return await real(*given, **named)

    monkeypatch.setattr(site.steps, verb, call)
    return failed


async def test_without_a_connection_no_call_begins_one(monkeypatch: pytest.MonkeyPatch, inits: list[Any]) -> None:
    """Ray would begin one of its own, or join the next best, for a call or its cancelling."""
    cluster = RealCluster(NOWHERE)
    with pytest.raises(ConnectionError, match="not connected"):
        cluster.send({"CPU": 1.0}, "word")
    with pytest.raises(ConnectionError, match="not connected"):
        cluster.cancel(ray.ObjectRef.nil(), force=True)
    with pytest.raises(ConnectionError, match="not connected"):
        cluster.want([])
    site = Site(monkeypatch)
    monkeypatch.setattr(executing, "Cluster", lambda _: cluster)
    await site.executor.begin()
    with pytest.raises(ExecutorLostError, match="not connected"):
        await site.run()
    await site.executor.close()
    assert inits == []


async def test_an_executor_that_was_closed_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a worker does that starts again after a stop."""
    site = Site(monkeypatch)
    for count in (1, 2):
        await site.executor.begin()
        await site.ready()
        assert site.cluster.connections == count
        await site.executor.close()


def test_a_connection_of_the_programs_own_is_used_and_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has connected disconnects; once that is gone, the executor connects for itself."""
    there, asked = [True], list[str]()

    def reach(address: str) -> str:
        asked.append(address)
        raise ConnectionRefusedError

    context = SimpleNamespace(get_node_id=lambda: "n")
    monkeypatch.setattr(clusters, "reach", reach)
    monkeypatch.setattr(ray, "shutdown", lambda: asked.append("shutdown"))
    monkeypatch.setattr(ray, "is_initialized", lambda: bool(there))
    monkeypatch.setattr(ray, "get_runtime_context", lambda: context)
    cluster = RealCluster(NOWHERE)
    monkeypatch.setattr(cluster, "_function", SimpleNamespace(remote=lambda: None))
    for _ in range(2):
        cluster.connect()
        assert cluster.here == "n"
        cluster.disconnect()
    there.clear()
    with pytest.raises(ConnectionRefusedError):
        cluster.connect()
    assert asked == [NOWHERE.address]


async def test_a_cluster_that_is_lost_while_it_is_looked_at_has_no_room(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a thread still finds is of before; there is none either while it connects anew."""
    looking, go_on, gone, connect = (threading.Event() for _ in range(4))

    def look() -> list[Node]:
        looking.set()
        go_on.wait(5)
        return [NODE]

    monkeypatch.setattr(site.cluster, "look", look)
    monkeypatch.setattr(site.cluster, "disconnect", gone.set)
    monkeypatch.setattr(site.cluster, "connect", lambda: connect.wait(5))
    await wait_until(looking.is_set)
    site.executor._open().sight.lose("its node is gone")
    assert site.executor.room("llm", {}) == 0
    go_on.set()
    await wait_until(gone.is_set)
    assert site.executor.room("llm", {}) == 0
    connect.set()
    await site.ready()


async def test_gpus_are_asked_for_though_a_look_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was claimed a moment before is not placed where there is none."""
    site = Site(monkeypatch)
    site.executor._amounts = lambda _: {"CPU": 1.0, "GPU": 1.0}
    site.cluster.nodes = [Node(NODE.id, {"CPU": 4.0, "GPU": 2.0}, {"CPU": 4.0, "GPU": 2.0})]
    await site.ready()
    monkeypatch.setattr(site.cluster, "look", lambda: [][0])
    await wait_until(lambda: not site.executor.room("llm", {}))
    running = site.run()
    await site.sent()
    assert site.cluster.sent[0][0] == {"CPU": 1.0, "GPU": 1.0}
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await site.executor.close()


async def test_a_call_that_ray_refuses_costs_no_other(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not the cluster that is away; nothing is claimed for a moment."""
    first = site.run()
    owed = await site.sent()

    def send(*_: Any) -> Any:
        raise ValueError("not beyond 0.0001")

    monkeypatch.setattr(site.cluster, "send", send)
    with pytest.raises(ExecutorLostError, match=r"not beyond 0\.0001"):
        await site.run()
    assert (site.cluster.connections, site.executor.room("llm", {})) == (1, 0)
    owed.set_result(encode_completion(done(site.fence)))
    assert await first == done(site.fence)


async def test_an_end_that_was_kept_counts_though_the_store_was_away(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked again, instead of taking a success for a crash."""
    monkeypatch.setattr(executing, "STORE_SECONDS", 0.01)
    running = site.run()
    site.begin()
    site.steps.kept[site.fence.job, ENDED] = ended(done(site.fence))
    failed = fail_once(monkeypatch, site, "read_steps", lambda names: any(name == ENDED for _, name in names))
    (await site.sent()).set_exception(exceptions.WorkerCrashedError())
    assert await running == done(site.fence)
    assert failed


async def test_a_call_that_nobody_began_is_given_up_though_the_store_was_away(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the next look: not to know is not to have begun."""
    monkeypatch.setattr(watch, "SLOW_SECONDS", 0.02)
    monkeypatch.setattr(watch, "LOST_SECONDS", 0.05)
    failed = fail_once(monkeypatch, site, "save_step", lambda *_, **__: True)
    with pytest.raises(ExecutorLostError, match="no Ray process began the job") as caught:
        await asyncio.wait_for(site.run(timeout=3600), 5)
    assert failed and not caught.value.begun


async def test_a_call_that_was_given_up_with_a_lost_answer_was_not_begun(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sign of the worker's own is none of a process, whoever finds it."""
    monkeypatch.setattr(watch, "SLOW_SECONDS", 0.02)
    monkeypatch.setattr(watch, "LOST_SECONDS", 0.05)
    monkeypatch.setattr(executing, "STOPPED_SECONDS", 0.01)
    site.steps.lost_answers = 1
    running = site.run()
    with pytest.raises(ExecutorLostError) as caught:
        await running
    assert not caught.value.begun


async def test_a_call_that_was_refused_for_the_workers_sign_was_not_begun(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a process answers that finds the call signed by another."""
    monkeypatch.setattr(executing, "STOPPED_SECONDS", 0.01)
    running = site.run()
    await site.executor._signer.lost(site.fence, "given up")
    (await site.sent()).set_result(b"{}")
    with pytest.raises(ExecutorLostError) as caught:
        await running
    assert not caught.value.begun


async def test_a_process_that_dies_of_opening_the_app_is_not_made_again_at_once(site: Site) -> None:
    """As one that tells why."""
    running = site.run()
    (await site.sent()).set_exception(exceptions.WorkerCrashedError())
    with pytest.raises(ExecutorLostError, match="before it began"):
        await running
    assert site.executor.room("llm", {}) == 0


async def test_a_worker_ends_in_order_whatever_ray_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agents' loop gives the actor up."""

    class Actor:
        def __getattr__(self, _name: str) -> Any:
            raise exceptions.LocalRayletDiedError

    keeper = agents_actor.AgentsKeeper("app", "headrace", "entry", "luggage")
    keeper._actor, keeper._driver = Actor(), "driver"
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(agents_actor, "_driver", lambda: "driver")
    await AgentsLoop(keeper, timedelta(seconds=1)).stop()
