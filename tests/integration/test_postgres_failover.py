"""Several servers in one URL: the one that takes writes is found at first, and again after a failover."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from headrace.model.errors import ConfigError, StoreUnavailableError
from headrace.stores.postgres import open_postgres_stores
from headrace.stores.postgres.database import Database, DatabaseOptions
from headrace.stores.postgres.servers import Servers, named_servers
from tests.backends.replicated import Pair, replicated_pair
from tests.integration.postgres_setup import claim, done, enqueue, register
from tests.waiting import wait_until

SECOND = timedelta(seconds=1)


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Return a primary that a standby follows."""
    with replicated_pair() as pair:
        yield pair


@asynccontextmanager
async def database(dsn: str, **options: timedelta) -> AsyncIterator[Database]:
    """Open a database without a schema of ours."""
    opened = Database(DatabaseOptions(dsn, max_pool_size=2, **options))
    try:
        yield opened
    finally:
        await opened.close()


async def test_work_and_hints_go_on_after_a_failover(pair: Pair) -> None:
    """Stores whose URL names the standby first work on the primary, and after it on the promoted standby."""
    stores = await open_postgres_stores(pair.backwards, auto_migrate=True)
    other = await open_postgres_stores(pair.dsn)
    heard: list[str] = []
    try:
        await other.notifier.subscribe(heard.append)
        await pair.replicate_synchronously()
        session = await register(stores)
        ids = await enqueue(stores, 20)
        await stores.jobs.complete_jobs(session, done(await claim(stores, session, 5)))
        pair.kill_primary()
        with pytest.raises(StoreUnavailableError):
            await stores.inspect.queue_stats()
        await pair.promote()

        [stats] = await stores.inspect.queue_stats()
        assert (stats.ready, stats.succeeded) == (15, 5)
        assert await stores.inspect.known_jobs(ids) == frozenset(ids)
        assert len(await stores.jobs.complete_jobs(session, done(await claim(stores, session, 15)))) == 15

        def hinted() -> bool:
            stores.notifier.hint("queue:after")
            return "queue:after" in heard

        await wait_until(hinted)
        assert stores.private_sessions is not None
        async with stores.private_sessions() as sessions:
            assert (await sessions.renew_session(session, lease=60 * SECOND, stats={})).alive
    finally:
        await stores.close()
        await other.close()


async def test_commands_take_an_address_of_several_servers(pair: Pair, tmp_path: Path) -> None:
    """`migrate` and `doctor` work on the primary wherever it stands in the URL."""

    def headrace(*words: str) -> dict[str, object]:
        command = [sys.executable, "-m", "headrace", "--url", pair.backwards, *words, "--json"]
        ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=os.environ)
        assert ended.stdout, ended.stderr
        return dict(json.loads(ended.stdout))

    assert await asyncio.to_thread(headrace, "migrate")
    checked = json.dumps(await asyncio.to_thread(headrace, "doctor"))
    assert f"127.0.0.1:{pair.standby.port},127.0.0.1:{pair.primary.port}" in checked
    assert "answers" in checked


async def test_a_server_that_takes_no_writes_any_more_is_unavailable(pair: Pair) -> None:
    """Connections to a server that was made read-only are dropped, and once it takes writes the next call works."""
    stores = await open_postgres_stores(f"postgresql://headrace@127.0.0.1:{pair.primary.port}/postgres",
                                        auto_migrate=True)  # fmt: skip
    try:
        for read_only in ("on", "off"):
            await pair.run(pair.primary, f"ALTER SYSTEM SET default_transaction_read_only = {read_only}")
            await pair.run(pair.primary, "SELECT pg_reload_conf()")

            async def changed(expected: str = read_only) -> bool:
                [[value]] = await pair.run(pair.primary, "SHOW default_transaction_read_only")
                return str(value) == expected

            await wait_until(changed)
            if read_only == "on":
                with pytest.raises(StoreUnavailableError, match="takes no writes"):
                    await enqueue(stores, 1)
        assert len(await enqueue(stores, 1)) == 1
    finally:
        await stores.close()


async def test_standbys_alone_are_no_store(pair: Pair) -> None:
    """When no server takes writes, the error names each and says why it does not do."""
    pair.kill_primary()
    async with database(pair.dsn) as opened:
        with pytest.raises(StoreUnavailableError) as refused:
            await opened.connect()
    assert f"127.0.0.1:{pair.primary.port}: ConnectionRefusedError" in str(refused.value)
    assert f"127.0.0.1:{pair.standby.port}: a standby, or read-only" in str(refused.value)


async def test_a_server_that_never_answers_holds_up_the_first_connection_only(pair: Pair) -> None:
    """A server gone without a word costs its part of the time once; then the one that answered comes first."""
    loop = asyncio.get_running_loop()
    silent = socket.create_server(("127.0.0.1", 0))  # the kernel accepts, and nobody reads
    silent.setblocking(False)
    port = silent.getsockname()[1]
    dsn = f"postgresql://headrace@127.0.0.1:{port},127.0.0.1:{pair.primary.port}/postgres"
    try:
        servers, begun = Servers(dsn), loop.time()
        await (await servers.connect(timeout=4)).close()
        assert loop.time() - begun >= 2
        silent.accept()[0].close()
        await (await servers.connect(timeout=4)).close()
        with pytest.raises(BlockingIOError):  # nobody came again
            silent.accept()
    finally:
        silent.close()


def test_a_session_that_may_not_write_is_refused() -> None:
    """An address that asks for a standby is a mistake in the configuration, and says what to write."""
    with pytest.raises(ConfigError, match="read-write or primary"):
        Servers("postgresql://a,b/jobs?target_session_attrs=prefer-standby")
    Servers("postgresql://a,b/jobs?target_session_attrs=primary")


@pytest.mark.parametrize(
    ("dsn", "servers"),
    [
        ("postgresql://a/jobs", [("a", None)]),
        ("postgresql:///jobs", []),
        ("postgresql://u:p@a:1,b:2,a:1/jobs", [("a", 1), ("b", 2)]),
        ("postgresql://u@[::1]:5433,[fe80::1]/jobs", [("::1", 5433), ("fe80::1", None)]),
        ("postgresql://u@/jobs?host=a,b&port=1,2", [("a", 1), ("b", 2)]),
        ("postgresql://u@a,b/jobs?port=7", [("a", 7), ("b", 7)]),
        ("postgresql://u@/jobs?host=/run/a,/run/b", [("/run/a", None), ("/run/b", None)]),
        ("postgresql://%2Frun%2Fa/jobs", [("/run/a", None)]),
        ("postgresql://a:x,b/jobs", []),
    ],
)
def test_servers_are_read_as_the_driver_reads_them(dsn: str, servers: list[tuple[str, int | None]]) -> None:
    """Hosts and ports of every form of address are found; what cannot be read is left for the driver to refuse."""
    assert list(named_servers(dsn)) == servers
