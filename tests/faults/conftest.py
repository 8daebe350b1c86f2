"""Every test of this folder has a system of its own on one server, and leaves nothing running."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import asyncpg
import pytest

from headrace import App
from headrace.stores.postgres import open_postgres_stores
from headrace.stores.redis import RedisSite, create_namespace
from tests.backends import valkey
from tests.backends.postgres import empty_schema, stores_on
from tests.backends.redis import empty_site
from tests.backends.server import PostgresServer, shared_server
from tests.backends.valkey import ValkeyServer
from tests.faults import tasks
from tests.faults.links import Links, links_to, observing, watched
from tests.faults.site import Site


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is here."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.faults)


#: For tests of what a site does on every store: `@ON_EVERY_STORE`.
ON_EVERY_STORE = pytest.mark.parametrize("site", ["postgres", "redis"], indirect=True)
#: The same where it takes long, and says little of a store that PostgreSQL does not say too.
ON_EVERY_STORE_SLOWLY = pytest.mark.parametrize(
    "site", ["postgres", pytest.param("redis", marks=pytest.mark.slow)], indirect=True
)
#: The same for those that crash their server: `@CRASHING_EVERY_STORE`.
CRASHING_EVERY_STORE = pytest.mark.parametrize("fragile_site", ["postgres", "redis"], indirect=True)
#: The same where it takes long, and says little of a store that PostgreSQL does not say too.
CRASHING_EVERY_STORE_SLOWLY = pytest.mark.parametrize(
    "fragile_site", ["postgres", pytest.param("redis", marks=pytest.mark.slow)], indirect=True
)
#: The same with each setting of when a Redis server writes its file to disk, of which everysec is the default.
CRASHING_EVERY_SETTING = pytest.mark.parametrize(
    "fragile_site", ["postgres", pytest.param("redis-everysec", marks=pytest.mark.slow), "redis-always"], indirect=True
)


@pytest.fixture
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    """Return a system whose workers are started by the test; afterwards every connection of theirs must be gone."""
    (tmp_path / "gates").mkdir()
    if getattr(request, "param", "postgres") == "redis":
        async with empty_site() as place, watched(Site(valkey.shared_server(), place.prefix, tmp_path)) as site:
            yield site
        return
    async with (
        empty_schema() as schema,
        stores_on(schema, None),
        watched(Site(shared_server(), schema, tmp_path)) as site,
    ):
        yield site


@pytest.fixture
async def observer(site: Site) -> AsyncIterator[asyncpg.Connection]:
    """Lend a connection of the test's own to look at the others."""
    async with observing(site.server.dsn) as observer:
        yield observer


@pytest.fixture
async def links(site: Site) -> AsyncIterator[Links]:
    """Look at the connections to the server of the site, whichever it is."""
    async with links_to(site) as links:
        yield links


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """Return a PostgreSQL server of the test's own, with fsync, that it may crash."""
    server = PostgresServer(durable=True)
    yield server
    server.remove()


@pytest.fixture
async def fragile_site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    """Return a system on a server that may be crashed: of "postgres", "redis", or "redis-everysec"."""
    (tmp_path / "gates").mkdir()
    store, _, fsync = getattr(request, "param", "postgres").partition("-")
    if store == "redis":
        with crashable_valkey(fsync or "always") as valkey:
            await create_namespace(RedisSite(valkey.dsn, prefix="site"))
            async with watched(Site(valkey, "site", tmp_path)) as site:
                yield site
        return
    server = request.getfixturevalue("own_server")
    await (await open_postgres_stores(server.dsn, schema="site", auto_migrate=True)).close()
    async with watched(Site(server, "site", tmp_path)) as site:
        yield site


@contextmanager
def crashable_valkey(fsync: str, **settings: str) -> Iterator[ValkeyServer]:
    """Start a Valkey server of the test's own that it may crash, with a setting of `appendfsync`.

    With `everysec` the server answers before it writes while an fsync is late, and a kill then loses what it had
    acknowledged: seen where the disk stalls, and in memory where no processor is free for the fsync. With `always` it
    loses nothing. A kill of the process leaves what was written: where the machine has a disk in memory, the file lies
    there.
    """
    memory = Path("/dev/shm")
    folder = memory if os.access(memory, os.W_OK) else Path("/tmp")
    server = ValkeyServer(folder=folder, appendfsync=fsync, **settings)
    try:
        yield server
    finally:
        server.remove()


@pytest.fixture
def own_valkey(request: pytest.FixtureRequest) -> Iterator[ValkeyServer]:
    """Return a Valkey server of the test's own that it may crash; its parameter is `appendfsync`."""
    with crashable_valkey(getattr(request, "param", "always")) as server:
        yield server


@pytest.fixture
async def fragile_redis(own_valkey: ValkeyServer, tmp_path: Path) -> AsyncIterator[Site]:
    """Return a system on a Redis store that may be crashed."""
    await create_namespace(RedisSite(own_valkey.url, prefix="site"))
    (tmp_path / "gates").mkdir()
    async with watched(Site(own_valkey, "site", tmp_path)) as site:
        yield site


@pytest.fixture
def app(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> App:
    """Return the app of the tasks, set up as the worker processes of the test's site are."""
    name = next((name for name in ("fragile_site", "fragile_redis") if name in request.fixturenames), "site")
    site: Site = request.getfixturevalue(name)
    for variable, value in site.environment.items():
        if not variable.startswith("HEADRACE_"):
            monkeypatch.setenv(variable, value)
    monkeypatch.setattr(tasks.app, "settings", site.settings(), raising=False)
    return tasks.app


@cache
def may_unshare() -> bool:
    """Return whether this machine allows pid namespaces of one's own."""
    command = ["unshare", "--kill-child=KILL", "-p", "-f", "--mount-proc", "true"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False
