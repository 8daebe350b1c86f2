"""Which Redis servers are refused when a store is opened, and what is said then."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace.model.capability import Capability
from headrace.model.errors import ConfigError, NotAllowedError, StoreUnavailableError, StoreVersionError
from headrace.model.job import JobState
from headrace.stores.redis import (
    RedisSite,
    adopt,
    create_namespace,
    namespace_is_missing,
    open_redis_limiter,
    open_redis_stores,
)
from headrace.stores.redis.addresses import Login, Node
from headrace.stores.redis.checks import check_server
from headrace.stores.redis.connection import Server, ServerOptions
from headrace.stores.redis.faults import RefusedError
from headrace.stores.redis.wire import Entry, connect
from headrace.testing.clock import FakeClock
from tests.backends.redis import empty_site, new_prefix, stores_on
from tests.backends.valkey import ValkeyServer, free_port, shared_server
from tests.conformance.scenario import Scenario
from tests.waiting import wait_until, wait_until_sync

GREET = """
from headrace import App

app = App()

@app.task
async def greet(name: str) -> str:
    return name
"""


class Servers:
    """Servers of one test, all removed after it."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def start(self, **settings: Any) -> ValkeyServer:
        """Start one."""
        server = ValkeyServer(**settings)
        self._stack.callback(server.remove)
        return server


@pytest.fixture
def servers() -> Iterator[Servers]:
    """Lend servers."""
    with ExitStack() as stack:
        yield Servers(stack)


async def refusal(server: ValkeyServer, **facts: Any) -> str:
    """Expect that no store opens on a server, and return why."""
    with pytest.raises(ConfigError) as caught:
        await create_namespace(RedisSite(server.url, prefix=new_prefix(), **facts))
    return str(caught.value)


async def test_a_server_without_an_append_only_file_is_refused(
    servers: Servers, caplog: pytest.LogCaptureFixture
) -> None:
    """It would lose every job with a restart; the flag that accepts this is warned of, and doctor is told."""
    server = servers.start(appendonly="no")
    message = await refusal(server)
    assert [word for word in ("queue.url", "appendonly yes", "unsafe_no_persistence") if word not in message] == []
    site = RedisSite(server.url, prefix=new_prefix(), unsafe=True)
    await create_namespace(site)
    async with stores_on(site, None) as stores:
        info = await stores.inspect.store_info()
    assert not info.durable
    assert Capability.SURVIVES_SERVER in info.lacks
    assert "a restart loses every job" in caplog.text


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
async def test_a_server_that_removes_keys_is_refused(servers: Servers, policy: str) -> None:
    """A full server may refuse, never forget: any policy but noeviction is named, with the fix."""
    message = await refusal(servers.start(maxmemory_policy=policy), unsafe=True)
    assert policy in message
    assert "noeviction" in message


async def test_a_replica_is_refused(servers: Servers) -> None:
    """A replica takes no writes: its primary is named, and so are sentinels."""
    primary = servers.start(port=True)
    replica = servers.start(port=True, replicaof=f"127.0.0.1 {primary.port}")
    message = await refusal(replica)
    assert f"127.0.0.1:{primary.port}" in message
    assert "redis+sentinel://" in message


async def test_a_replica_is_refused_as_limiter_too(servers: Servers) -> None:
    """Units cannot be taken where nothing can be written: the setting that names it is named."""
    primary = servers.start(port=True)
    replica = servers.start(port=True, replicaof=f"127.0.0.1 {primary.port}")
    with pytest.raises(ConfigError, match=r"limits\.url \(HEADRACE_LIMITS_URL\) names a replica.*its primary"):
        await open_redis_limiter(replica.url)


async def test_a_node_of_a_cluster_is_refused_as_a_server(servers: Servers) -> None:
    """A cluster's node sends others elsewhere: the URL has to say that it is a cluster."""
    assert "redis+cluster://" in await refusal(servers.start(port=True, cluster_enabled="yes"))


async def test_a_sentinel_is_refused_as_a_server(servers: Servers) -> None:
    """A sentinel has no jobs: the URL has to say that it is one."""
    assert "redis+sentinel://" in await refusal(servers.start(sentinel=True))


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("redis://:hush@127.0.0.1:{port}/99", "must name a database that the server has, got 99"),
        ("redis+sentinel://127.0.0.1:{port}/jobs?password=hush&sentinel_password=hush", "must name a sentinel"),
        ("redis+cluster://:hush@127.0.0.1:{port}", "must name a node of a cluster"),
        ("redis://:hush#@127.0.0.1:{port}", "percent-encoded"),
    ],
)
def test_an_address_of_something_else_is_a_wrong_setting(servers: Servers, tmp_path: Path, url: str, rule: str) -> None:
    """What the server lacks, or is not, is a mistake in the setting, which is named: exit code 2, and no password."""
    server = servers.start(port=True, requirepass="hush")
    ended = run(tmp_path, url.format(port=server.port), "queue", "stats")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert [word for word in ("queue.url (HEADRACE_URL)", rule) if word not in ended.stderr] == []
    assert [word for word in ("hush", "bug", "Traceback") if word in ended.stderr] == []


@pytest.mark.parametrize("settings", [{}, {"requirepass": "hush"}])
async def test_tls_to_a_port_without_it_is_a_wrong_setting(servers: Servers, settings: dict[str, str]) -> None:
    """A server that answers no TLS and answers without has another scheme; it is not told who we are."""
    server = servers.start(port=True, **settings)
    entry = Entry(Login(None, "hush"), ssl.create_default_context, wait=timedelta(seconds=0.3))
    with pytest.raises(ConfigError, match=r"HEADRACE_URL\) must begin with a scheme without TLS"):
        await connect(Node("127.0.0.1", server.port), entry)
    server.signal(signal.SIGSTOP)
    with pytest.raises(StoreUnavailableError, match="no connection"):
        await connect(Node("127.0.0.1", server.port), entry)


async def test_what_config_get_would_tell_is_read_from_info(servers: Servers) -> None:
    """Managed servers forbid CONFIG: append-only file, eviction and role are known all the same."""
    server = servers.start()
    server.call("ACL", "SETUSER", "app", "on", ">hush", "~*", "&*", "+@all", "-config", "-acl")
    site = RedisSite(f"{server.url}?username=app&password=hush", prefix=new_prefix())
    await create_namespace(site)
    async with stores_on(site, None) as stores:
        info = await stores.inspect.store_info()
    assert Capability.SURVIVES_SERVER in info.capabilities
    assert Capability.SURVIVES_MACHINE in info.lacks
    assert any("does not tell" in note for note in info.notes)
    server.call("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
    with pytest.raises(ConfigError, match="allkeys-random"):
        await open_redis_stores(site)


async def test_a_user_with_the_documented_rights_can_do_everything(servers: Servers) -> None:
    """What docs/explanation/redis-store.md asks for is enough, and no more than the keys of the namespace."""
    server = servers.start()
    rights = ["+@read", "+@write", "+@scripting", "+@pubsub", "+@connection", "+info", "+time", "+config|get"]
    server.call("ACL", "SETUSER", "app", "on", ">hush", "~{jobs*", "&{jobs*", *rights)
    login = f"{server.url}?username=app&password=hush"
    await create_namespace(RedisSite(login, prefix="jobs"))
    async with stores_on(RedisSite(login, prefix="jobs"), None) as stores:
        on = Scenario(stores, FakeClock())
        batch = await on.batch(2)
        await on.work_off(await on.worker(), [JobState.SUCCEEDED, JobState.FAILED])
        assert [closed.id for closed in await stores.batches.close_batches([batch])] == [batch]
        heard: list[str] = []
        await stores.notifier.subscribe(heard.append)
        await on.enqueue()
        await wait_until(lambda: heard)
        assert "appendfsync everysec" in "".join((await stores.inspect.store_info()).notes)
    with pytest.raises(NotAllowedError, match="grant the missing right"):
        await create_namespace(RedisSite(login, prefix="others"))


@pytest.mark.parametrize("missing", ["resetchannels", "-publish"])
def test_who_may_not_publish_enqueues_all_the_same(servers: Servers, tmp_path: Path, missing: str) -> None:
    """New users of a server have no channels: what they enqueue is stored and doctor names the right that lacks."""
    server = servers.start(port=True)
    server.call("ACL", "SETUSER", "app", "on", ">hush", "~*", "+@all", "allchannels", missing)
    login = f"redis://app:hush@127.0.0.1:{server.port}"
    (tmp_path / "jobs.py").write_text(GREET)
    run(tmp_path, login, "migrate")
    assert run(tmp_path, login, "enqueue", "jobs:app", "greet", '"Ada"').returncode == 0
    assert '"ready": 1' in run(tmp_path, login, "queue", "stats", "--json").stdout
    examined = run(tmp_path, login, "doctor")
    assert (examined.returncode, "have +@pubsub and &{headrace*" in examined.stdout) == (1, True)
    server.call("ACL", "SETUSER", "app", "+@pubsub", "resetchannels", "&{headrace*")
    assert run(tmp_path, login, "doctor").returncode == 0


async def test_who_may_not_listen_is_told_once_and_said_to_poll(
    servers: Servers, caplog: pytest.LogCaptureFixture
) -> None:
    """A SUBSCRIBE that is refused is logged, not each try again; the store has hints from the moment it is granted."""
    server = servers.start(port=True)
    server.call("ACL", "SETUSER", "app", "on", ">hush", "~*", "+@all", "resetchannels")
    site = RedisSite(f"redis://app:hush@127.0.0.1:{server.port}", prefix=new_prefix())
    await create_namespace(site)
    async with stores_on(site, None) as stores:
        with caplog.at_level(logging.INFO, "headrace.hints"):
            await stores.notifier.subscribe(lambda _: None)
            assert Capability.HINTS in (await stores.inspect.store_info()).lacks
            again = r"cmdstat_subscribe:.*rejected_calls=[2-9]"
            await wait_until(lambda: re.search(again, server.call("INFO", "commandstats")))
            server.call("ACL", "SETUSER", "app", "&*")
            await wait_until(lambda: "heard again" in caplog.text)
        assert Capability.HINTS in (await stores.inspect.store_info()).capabilities
    assert [text for text in caplog.messages if "NOPERM" in text] == [caplog.messages[0]]
    assert "work is noticed by the poll" in caplog.messages[0]


@pytest.mark.parametrize("url", ["{url}", "{url}?password=wrong-hush", "{url}?username=nobody&password=wrong-hush"])
async def test_a_wrong_password_is_refused_without_being_told(servers: Servers, url: str) -> None:
    """The error says what to correct; no password is in it."""
    server = servers.start(requirepass="right-hush")
    with pytest.raises(NotAllowedError) as caught:
        await create_namespace(RedisSite(url.format(url=server.url)))
    assert "HEADRACE_URL" in str(caught.value)
    assert "hush" not in f"{caught.value}{caught.value.__cause__}"


async def test_a_password_opens(servers: Servers) -> None:
    """The password may stand in the address, for the default user as for a named one."""
    server = servers.start(requirepass="hush", port=True)
    assert await create_namespace(RedisSite(f"redis://:hush@127.0.0.1:{server.port}/3", prefix=new_prefix()))


async def test_a_server_that_is_not_there_is_named() -> None:
    """Nothing listens: the address is named, and the error is one that may pass."""
    port = free_port()
    with pytest.raises(StoreUnavailableError, match=str(port)) as caught:
        await create_namespace(RedisSite(f"redis://127.0.0.1:{port}"))
    assert caught.value.transient


async def test_a_server_that_speaks_something_else_is_told() -> None:
    """What is no Redis server is refused within its time, not waited for."""

    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    listener = await asyncio.start_server(greet, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    async with listener:
        with pytest.raises(StoreUnavailableError, match="Redis server"):
            await create_namespace(RedisSite(f"redis://127.0.0.1:{port}"))


async def test_a_server_that_is_too_old_is_refused(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it is new enough is asked by a script of the kind we use, whatever version it claims to be."""
    server = Server(ServerOptions(await _address(servers)))
    call = server.call

    async def old(*words: Any, **options: Any) -> Any:
        if words[0] == "EVAL":
            raise RefusedError("ERR Error compiling script (new function): user_script:1: unexpected symbol near '#'")
        return await call(*words, **options)

    monkeypatch.setattr(server, "call", old)
    with pytest.raises(ConfigError, match=r"too old.*Redis 7"):
        await check_server(server)
    await server.close()


async def _address(servers: Servers) -> Any:
    from headrace.stores.redis.addresses import parse_address

    return parse_address(servers.start().url)


async def test_a_namespace_is_made_once_and_by_command_alone() -> None:
    """Opening makes nothing: a namespace that was never made is an error that names the command."""
    site = RedisSite(shared_server().url, prefix=new_prefix())
    assert await namespace_is_missing(site)
    with pytest.raises(StoreVersionError, match="headrace migrate"):
        await open_redis_stores(site)
    made = await asyncio.gather(*(create_namespace(site) for _ in range(5)))
    assert sorted(made) == [False] * 4 + [True]
    assert not await namespace_is_missing(site)


async def test_a_namespace_of_another_layout_is_refused() -> None:
    """Keys that another version wrote are not touched."""
    async with empty_site() as site:
        shared_server().call("HSET", f"{site.root}:about", "layout", "99")
        with pytest.raises(StoreVersionError, match=r"layout 99.*needs 1"):
            await open_redis_stores(site)


async def test_groups_of_workers_have_jobs_of_their_own() -> None:
    """Another consumer group is another namespace: nothing of one is seen by the other."""
    async with empty_site() as site, empty_site(prefix=site.prefix, group="nightly") as other:
        assert (site.root, other.root) == (f"{{{site.prefix}}}", f"{{{site.prefix}:nightly}}")
        async with stores_on(site, None) as mine, stores_on(other, None) as theirs:
            await mine.control.set_queue_paused("default", paused=True)
            assert await theirs.inspect.queue_stats() == []


async def test_adopting_what_is_in_force_changes_nothing() -> None:
    """An operator who adopts a healthy store does no harm."""
    async with empty_site() as site, stores_on(site, None) as stores:
        await stores.control.set_queue_paused("default", paused=True)
        await adopt(site)
        [queue] = await stores.inspect.queue_stats()
        assert queue.paused


def run(directory: Path, url: str, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command line on a Redis store."""
    environ = {**os.environ, "HEADRACE_URL": url, **variables}
    command = [sys.executable, "-m", "headrace", *words]
    return subprocess.run(command, cwd=directory, env=environ, capture_output=True, text=True, check=False)


def test_the_command_line_says_what_to_do(servers: Servers, tmp_path: Path) -> None:
    """Each refusal has the exit code of its kind and its fix, and no command ends with a traceback."""
    server = servers.start()
    unmade = run(tmp_path, server.url, "queue", "stats")
    assert (unmade.returncode, "headrace migrate" in unmade.stderr) == (1, True)
    assert run(tmp_path, server.url, "migrate").stdout == "applied: namespace {headrace}\n"
    assert "nothing to apply" in run(tmp_path, server.url, "migrate").stdout
    assert run(tmp_path, server.url, "queue", "stats").returncode == 0
    server.call("CONFIG", "SET", "appendonly", "no")
    unsafe = run(tmp_path, server.url, "queue", "stats")
    assert (unsafe.returncode, "appendonly yes" in unsafe.stderr, "Traceback" in unsafe.stderr) == (2, True, False)
    assert run(tmp_path, server.url, "queue", "stats", HEADRACE_QUEUE_UNSAFE_NO_PERSISTENCE="true").returncode == 0
    server.stop()
    gone = run(tmp_path, server.url, "queue", "stats")
    assert (gone.returncode, "Traceback" in gone.stderr) == (3, False)


def test_doctor_says_what_a_store_keeps(servers: Servers, tmp_path: Path) -> None:
    """With an fsync per commit the durability is ok, with one per second a warning: a crash of the machine can cost."""
    server = servers.start(appendfsync="always")
    run(tmp_path, server.url, "migrate")
    wait_until_sync(lambda: "loading:0" in server.call("INFO", "persistence"))
    sure = run(tmp_path, server.url, "doctor").stdout
    server.call("CONFIG", "SET", "appendfsync", "everysec")
    lately = run(tmp_path, server.url, "doctor").stdout
    assert "ok    durability  accepted jobs are on disk" in sure
    assert "warn  durability" in lately
    assert "set appendfsync always" in lately
    for word in ("survives_failover", "transactional_enqueue", "history_on_disk", "SUBSCRIBE hears PUBLISH"):
        assert word in lately
    assert replace(RedisSite(server.url), prefix="headrace").root in lately
