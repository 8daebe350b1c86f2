"""A primary that dies or freezes: behind sentinels, and in a cluster. Real servers, real promotions."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from headrace import App
from headrace.model.errors import StorageResetError, StoreUnavailableError
from headrace.model.job import NewJob
from headrace.settings import load_settings
from headrace.stores.redis import RedisSite, create_namespace
from tests.backends.redis import new_prefix, stores_on
from tests.backends.valkey import ValkeyServer, free_port
from tests.conformance.scenario import ARGS, SPEC
from tests.waiting import wait_until, wait_until_sync

#: From the death of a primary to work on its successor, as promised.
TAKEOVER = 15.0
SLOTS = 16_384


@dataclass
class Servers:
    """What stands behind one address."""

    url: str
    nodes: list[ValkeyServer]

    def of_port(self, port: int) -> ValkeyServer:
        """Return the server at a port."""
        return next(node for node in self.nodes if node.port == port)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Remove what a test started."""
    with ExitStack() as stack:
        yield stack


def start(stack: ExitStack, **settings: str) -> ValkeyServer:
    """Start a server on a port."""
    server = ValkeyServer(port=True, **settings)
    stack.callback(server.remove)
    return server


def role(server: ValkeyServer) -> str:
    """Return what a server is: master or slave."""
    lines = server.call("INFO", "replication").splitlines()
    return next(line.partition(":")[2] for line in lines if line.startswith("role:"))


def sentinels(stack: ExitStack) -> Servers:
    """Start a primary, a replica that follows it, and three sentinels that agree on both."""
    primary = start(stack)
    replica = start(stack, replicaof=f"127.0.0.1 {primary.port}")
    wait_until_sync(lambda: "master_link_status:up" in replica.call("INFO", "replication"))
    watchers = [ValkeyServer(sentinel=True) for _ in range(3)]
    for watcher in watchers:
        stack.callback(watcher.remove)
        assert watcher.call("SENTINEL", "MONITOR", "jobs", "127.0.0.1", primary.port, 2) == "+OK"
        for name, value in (("down-after-milliseconds", 1_000), ("failover-timeout", 3_000)):
            watcher.call("SENTINEL", "SET", "jobs", name, value)
    for watcher in watchers:
        wait_until_sync(lambda watcher=watcher: "sentinels=3" in watcher.call("INFO", "sentinel"))  # type: ignore[misc]
        wait_until_sync(lambda watcher=watcher: "slaves=1" in watcher.call("INFO", "sentinel"))  # type: ignore[misc]
    hosts = ",".join(f"127.0.0.1:{watcher.port}" for watcher in watchers)
    return Servers(f"redis+sentinel://{hosts}/jobs?db=2", [primary, replica])


def cluster(stack: ExitStack) -> Servers:
    """Start three primaries that share the slots, each with a replica."""
    settings = {"cluster_enabled": "yes", "cluster_node_timeout": "1500"}
    nodes = [start(stack, cluster_port=str(free_port()), **settings) for _ in range(6)]
    for node in nodes:
        for other in nodes:
            node.call("CLUSTER", "MEET", "127.0.0.1", other.port, other.settings["cluster-port"])
    for number in range(3):
        bounds = (SLOTS * number // 3, SLOTS * (number + 1) // 3 - 1)
        assert nodes[number].call("CLUSTER", "ADDSLOTSRANGE", *bounds) == "+OK"
    for node in nodes:
        wait_until_sync(lambda node=node: "cluster_known_nodes:6" in node.call("CLUSTER", "INFO"))  # type: ignore[misc]
    for number in range(3):
        wait_until_sync(lambda number=number: follow(nodes[3 + number], nodes[number]))  # type: ignore[misc]
    for node in nodes:
        wait_until_sync(lambda node=node: "cluster_state:ok" in node.call("CLUSTER", "INFO"))  # type: ignore[misc]
    for node in nodes[3:]:
        wait_until_sync(lambda node=node: "master_link_status:up" in node.call("INFO", "replication"))  # type: ignore[misc]
    return Servers(f"redis+cluster://127.0.0.1:{nodes[0].port},127.0.0.1:{nodes[1].port}", nodes)


def follow(replica: ValkeyServer, primary: ValkeyServer) -> bool:
    """Let a node of the cluster follow another, once it knows of it."""
    return replica.call("CLUSTER", "REPLICATE", primary.call("CLUSTER", "MYID")) == "+OK"


@asynccontextmanager
async def app_on(servers: Servers) -> AsyncIterator[App]:
    """Return an app on a namespace of its own."""
    environ = {"HEADRACE_URL": servers.url, "HEADRACE_QUEUE_STREAM_PREFIX": new_prefix()}
    settings = load_settings(environ=environ, file=Path("missing.toml"))
    await create_namespace(RedisSite(servers.url, prefix=settings.queue.stream_prefix))
    yield App(settings=settings)


def holder_of(servers: Servers, prefix: str) -> ValkeyServer:
    """Return the primary that has the keys of a namespace."""
    return next(
        node for node in servers.nodes if role(node) == "master" and any(has_keys(node, prefix, db) for db in range(3))
    )


def has_keys(node: ValkeyServer, prefix: str, db: int) -> bool:
    """Return whether a server has keys of a namespace in a database."""
    return node.call("EXISTS", f"{{{prefix}}}:about", db=db) == ":1"


async def survives(servers: Servers, how: signal.Signals) -> float:
    """Take the primary away under load; return the seconds until work went on, and see that all that is known ends."""
    runs: list[int] = []
    async with app_on(servers) as app:

        @app.task
        async def count(number: int) -> int:
            runs.append(number)
            return number

        async with app.worker():
            jobs = [await count.enqueue(number) for number in range(200)]
            assert [await job.result(20) for job in jobs] == list(range(200))
            victim = holder_of(servers, app.settings.queue.stream_prefix)
            # Replication is asynchronous: what is asked here is that work goes on, not what a failover may lose.
            victim.call("WAIT", 1, 1_000)
            began = time.monotonic()
            if how is signal.SIGSTOP:
                victim.signal(how)
            else:
                victim.stop(how)

            async def goes_on() -> bool:
                try:
                    return await (await count.enqueue(1_000)).result(2) == 1_000
                except (StoreUnavailableError, TimeoutError):
                    return False

            await wait_until(goes_on, timedelta(seconds=40))
            took = time.monotonic() - began
            views = await app.runtime.stores.inspect.final_jobs([job.id for job in jobs])
            assert len(views) == 200
            assert {view.result for view in views.values()} == set(range(200))
            [session] = [each for each in await app.runtime.stores.inspect.list_sessions() if each.alive]
            assert session.running == 0
            if how is signal.SIGSTOP:
                victim.signal(signal.SIGCONT)
                # Back as a replica: whoever still asked it would be refused, or read the past.
                await wait_until(lambda: role(victim) == "slave", timedelta(seconds=20))
                assert await (await count.enqueue(2_000)).result(10) == 2_000
    return took


@pytest.mark.parametrize(
    "how", [signal.SIGKILL, pytest.param(signal.SIGSTOP, marks=pytest.mark.slow)], ids=["killed", "frozen"]
)
async def test_a_promoted_replica_is_found_by_sentinels(stack: ExitStack, how: signal.Signals) -> None:
    """A primary that died, or hangs, is left for its successor within the promised time; the old one is not asked."""
    took = await survives(sentinels(stack), how)
    print(f"takeover behind sentinels after {how.name}: {took:.1f} s")
    assert took <= TAKEOVER


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "frozen"])
async def test_a_promoted_replica_is_found_in_a_cluster(stack: ExitStack, how: signal.Signals) -> None:
    """The same in a cluster of three primaries with a replica each."""
    took = await survives(cluster(stack), how)
    print(f"takeover in a cluster after {how.name}: {took:.1f} s")
    assert took <= TAKEOVER


async def test_a_cluster_is_found_without_the_node_that_was_named(stack: ExitStack) -> None:
    """With the only named node dead, the successor is asked that it told of; so is it by connections made later."""
    named, replica = one_slot_owner(stack)
    site = RedisSite(f"redis+cluster://127.0.0.1:{named.port}", prefix=new_prefix())
    await create_namespace(site)
    async with stores_on(site, None) as stores:
        await stores.control.set_queue_paused("default", paused=True)
        named.call("WAIT", 1, 1_000)
        named.stop(signal.SIGKILL)
        # There is no other primary that could vote for it.
        assert replica.call("CLUSTER", "FAILOVER", "TAKEOVER") == "+OK"

        async def is_paused() -> bool:
            try:
                return (await stores.control.queue_states())["default"].paused
            except StoreUnavailableError:
                return False

        await wait_until(is_paused)
        async with stores.private_sessions() as sessions:
            assert await sessions.sessions_on("host") == []


@pytest.mark.parametrize("kind", ["unknown-endpoint", "hostname"])
async def test_a_node_that_tells_no_host_is_found(stack: ExitStack, kind: str) -> None:
    """A cluster that leaves hosts out is asked where it was named, one without host names at its addresses."""
    node = start(stack, cluster_enabled="yes", cluster_preferred_endpoint_type=kind)
    assert node.call("CLUSTER", "ADDSLOTSRANGE", 0, SLOTS - 1) == "+OK"
    assert "127.0.0.1" not in node.call("CLUSTER", "SLOTS").partition(str(node.port))[0]
    wait_until_sync(lambda: "cluster_state:ok" in node.call("CLUSTER", "INFO"))
    assert await create_namespace(RedisSite(f"redis+cluster://127.0.0.1:{node.port}", prefix=new_prefix()))


def one_slot_owner(stack: ExitStack) -> tuple[ValkeyServer, ValkeyServer]:
    """Start a cluster of one primary and its replica."""
    settings = {"cluster_enabled": "yes", "cluster_node_timeout": "1500"}
    primary, replica = start(stack, **settings), start(stack, **settings)
    assert primary.call("CLUSTER", "ADDSLOTSRANGE", 0, SLOTS - 1) == "+OK"
    replica.call("CLUSTER", "MEET", "127.0.0.1", primary.port, primary.settings["cluster-port"])
    wait_until_sync(lambda: follow(replica, primary))
    wait_until_sync(lambda: str(replica.port) in primary.call("CLUSTER", "SLOTS"))
    wait_until_sync(lambda: "cluster_state:ok" in replica.call("CLUSTER", "INFO"))
    wait_until_sync(lambda: "master_link_status:up" in replica.call("INFO", "replication"))
    return primary, replica


@pytest.mark.slow
async def test_namespaces_of_a_cluster_live_where_their_slot_does(stack: ExitStack) -> None:
    """Whichever node is named, each namespace is found on the node that has its slot; two nodes serve two of them."""
    servers = cluster(stack)
    for _ in range(6):
        site = RedisSite(servers.url, prefix=new_prefix())
        await create_namespace(site)
        async with stores_on(site, None) as stores:
            [job] = await stores.jobs.insert_jobs([NewJob(SPEC, ARGS)])
            assert await stores.inspect.get_job(job) is not None
    holders = [node for node in servers.nodes[:3] if node.call("DBSIZE") != ":0"]
    assert len(holders) > 1


async def test_a_replica_that_never_had_the_data_is_a_reset(stack: ExitStack) -> None:
    """A failover to an empty server is a loss, and said so: nothing is begun on it."""
    first, second = start(stack), start(stack)
    watcher = ValkeyServer(sentinel=True)
    stack.callback(watcher.remove)
    watcher.call("SENTINEL", "MONITOR", "jobs", "127.0.0.1", first.port, 1)
    site = RedisSite(f"redis+sentinel://127.0.0.1:{watcher.port}/jobs", prefix=new_prefix())
    await create_namespace(site)
    async with stores_on(site, None) as stores:
        await stores.jobs.insert_jobs([NewJob(SPEC, ARGS)])
        watcher.call("SENTINEL", "REMOVE", "jobs")
        watcher.call("SENTINEL", "MONITOR", "jobs", "127.0.0.1", second.port, 1)
        first.stop(signal.SIGKILL)

        async def answer() -> type[BaseException] | None:
            [found] = await asyncio.gather(stores.jobs.insert_jobs([NewJob(SPEC, ARGS)]), return_exceptions=True)
            return type(found) if isinstance(found, StorageResetError) else None

        assert await wait_until(answer) is StorageResetError
    assert second.call("DBSIZE") == ":0"
