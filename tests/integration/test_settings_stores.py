"""`[queue]` and `[blob_storage]`: what each key does when headrace.toml sets it, on real servers.

Servers that must not be trusted with jobs (`unsafe_no_persistence`): test_redis_start.py. `pooled` and `listen_url`:
test_postgres_pooler.py. Keys that concern workers: tests/unit/test_settings_worker.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from headrace import App
from headrace.blobs.s3 import S3Blobs
from headrace.model.errors import BlobStoreError
from headrace.model.ids import uuid7
from headrace.wiring import migrate
from tests.backends import s3, valkey
from tests.backends.postgres import empty_schema
from tests.backends.redis import new_prefix
from tests.integration.postgres_setup import connection, shared_server
from tests.unit.settings_app import write_settings
from tests.waiting import wait_until

LARGE = "x" * 200_000


@dataclass(slots=True)
class Kind:
    """A kind of server: the keys of `[queue]` that name a place of a test's own on it, and a look at its clients."""

    keys: dict[str, object]
    clients: Callable[[], Awaitable[int]]
    listeners: Callable[[], Awaitable[int]]


async def _count(sql: str) -> int:
    async with connection() as opened:
        return int(await opened.fetchval(sql))


async def _none(sql: str) -> bool:
    return await _count(sql) == 0


async def _words(*words: str) -> int:
    return len([line for line in valkey.shared_server().call(*words).splitlines() if line])


@pytest.fixture(params=["postgres", "redis"])
async def kind(request: pytest.FixtureRequest) -> AsyncIterator[Kind]:
    """Name a place on a server of each kind."""
    if request.param == "redis":
        prefix = new_prefix()
        keys: dict[str, object] = {
            "queue.type": "redis", "queue.url": valkey.shared_server().url, "queue.stream_prefix": prefix,
        }  # fmt: skip
        channels = ("PUBSUB", "CHANNELS", f"*{prefix}*")
        empty = len(valkey.shared_server().call("PUBSUB", "CHANNELS", "no-such-channel").splitlines())
        yield Kind(keys, lambda: _words("CLIENT", "LIST"), lambda: _less(_words(*channels), empty))
        return
    async with empty_schema() as schema:
        keys = {"queue.type": "postgres", "queue.url": shared_server().dsn, "queue.schema": schema}
        ours = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'headrace'"
        # Those of other tests may be about to go.
        await wait_until(lambda: _none(ours))
        yield Kind(keys, lambda: _count(ours), lambda: _count(f"{ours} AND query ILIKE 'listen%'"))


async def _less(count: Awaitable[int], less: int) -> int:
    return await count - less


async def app_by(folder: Path, keys: Mapping[str, object]) -> App:
    """Return an app by a headrace.toml, with one task, on a store that is made."""
    settings = write_settings(folder, {"directory": str(folder / "own"), **keys})
    await migrate(settings)
    app = App(settings=settings)

    @app.task
    async def double(number: int) -> int:
        return 2 * number

    return app


async def test_type_and_url(tmp_path: Path, kind: Kind) -> None:
    """They name the store: another process that is given the same works what one enqueues."""
    client, other = await app_by(tmp_path, kind.keys), await app_by(tmp_path, kind.keys)
    async with client, other.worker():
        handle = await client.find_task("double").enqueue(2)
        assert await handle.result("10s") == 4


@pytest.mark.parametrize("size", [4, 9])
async def test_max_pool_size(tmp_path: Path, kind: Kind, size: int) -> None:
    """However much is asked at once, a process has no more connections; on PostgreSQL it makes use of them."""
    app = await app_by(tmp_path, {**kind.keys, "queue.max_pool_size": size})
    before = await kind.clients()
    async with app.worker():
        handle = await app.find_task("double").enqueue(2)
        await asyncio.gather(*(app.runtime.stores.inspect.get_job(handle.id) for _ in range(300)))
        assert await handle.result("10s") == 4
        most = await kind.clients() - before
    assert most <= size
    assert most > 4 or size == 4 or kind.keys["queue.type"] == "redis"


@pytest.mark.parametrize("listens", [True, False])
async def test_enable_listen_notify(tmp_path: Path, kind: Kind, listens: bool) -> None:
    """With it a worker that polls once an hour hears of a job; without it nobody listens, and polls find the job."""
    keys = {
        **kind.keys,
        "queue.enable_listen_notify": listens,
        "worker.poll_interval": "1h" if listens else "50ms",
    }
    client, other = await app_by(tmp_path, kind.keys), await app_by(tmp_path, keys)
    before = await kind.listeners()
    async with other.worker():
        if listens:
            await wait_until(lambda: _less(kind.listeners(), before))
        async with client:
            handle = await client.find_task("double").enqueue(2)
            assert await handle.result("10s") == 4
        assert (await kind.listeners() > before) is listens


async def test_schema(tmp_path: Path) -> None:
    """The tables lie there, and jobs of another schema are nothing to it."""
    async with empty_schema() as schema, empty_schema() as other:
        keys = {"queue.type": "postgres", "queue.url": shared_server().dsn}
        app = await app_by(tmp_path, {**keys, "queue.schema": schema})
        beside = await app_by(tmp_path, {**keys, "queue.schema": other})
        async with app, beside:
            await app.find_task("double").enqueue(1)
            assert await _count(f'SELECT count(*) FROM "{schema}".jobs') == 1
            assert await beside.runtime.stores.inspect.list_jobs() == []


async def test_stream_prefix_and_consumer_group(tmp_path: Path) -> None:
    """All keys begin with the prefix; each group has jobs of its own, which workers of that group take over."""
    prefix, server = new_prefix(), valkey.shared_server()
    keys = {"queue.type": "redis", "queue.url": server.url, "queue.stream_prefix": prefix}
    day, night = await app_by(tmp_path, keys), await app_by(tmp_path, {**keys, "queue.consumer_group": "night"})
    worker = await app_by(tmp_path, {**keys, "queue.consumer_group": "night"})
    async with day, night:
        first, second = await day.find_task("double").enqueue(1), await night.find_task("double").enqueue(2)
        async with worker.worker():
            assert await second.result("10s") == 4
        assert [job.id for job in await day.runtime.stores.inspect.list_jobs()] == [first.id]
        assert await _words("KEYS", f"{{{prefix}}}*") > 1
        assert await _words("KEYS", f"{{{prefix}:night}}*") > 1


async def test_enable_persistence(tmp_path: Path, kind: Kind, caplog: pytest.LogCaptureFixture) -> None:
    """False, and said to be meant: jobs run, with a warning; on PostgreSQL nothing of them is kept anywhere."""
    keys = {**kind.keys, "queue.enable_persistence": False, "queue.unsafe_no_persistence": True}
    app = await app_by(tmp_path, keys)
    with caplog.at_level(logging.WARNING):
        async with app.worker():
            assert await (await app.find_task("double").enqueue(2)).result("10s") == 4
    if keys["queue.type"] == "postgres":
        assert "queue.enable_persistence = false: every job is lost with this process" in caplog.text
        assert not (tmp_path / "own").exists()


# [blob_storage]


async def run_large(app: App) -> None:
    """Run a workflow whose value is large."""

    @app.task
    async def large() -> str:
        return LARGE

    app.workflow("flow", large.si())
    async with app.worker():
        assert await (await app.start("flow")).result("20s") == LARGE


async def test_blob_storage_local(tmp_path: Path) -> None:
    """Large values lie in `path`, or else in `directory`."""
    memory = {"queue.type": "memory", "blob_storage.type": "local"}
    await run_large(await app_by(tmp_path, {**memory, "blob_storage.path": str(tmp_path / "values")}))
    assert LARGE in _contents(tmp_path / "values")
    assert not (tmp_path / "own").exists()
    async with empty_schema() as schema:
        keys = {"queue.type": "postgres", "queue.url": shared_server().dsn, "queue.schema": schema}
        await run_large(await app_by(tmp_path, keys))
    assert LARGE in _contents(tmp_path / "own" / "blobs")


def _contents(folder: Path) -> str:
    return "".join(file.read_text() for file in folder.rglob("*") if file.is_file())


@pytest.mark.parametrize("storage", ["s3", "minio"])
async def test_blob_storage_s3(tmp_path: Path, storage: str) -> None:
    """Large values lie in `bucket` of the server at `endpoint`, by the keys that are given."""
    site = s3.new_site()
    keys = {
        "queue.type": "memory",
        "blob_storage.type": storage,
        "blob_storage.endpoint": site.endpoint,
        "blob_storage.bucket": site.bucket,
        "blob_storage.access_key": site.access_key,
        "blob_storage.secret_key": site.secret_key,
    }
    await run_large(await app_by(tmp_path, keys))
    blobs = S3Blobs(site)
    found = [await blobs.get_blob(key) async for key, _ in blobs.list_blobs("")]
    assert any(LARGE.encode() in one for one in found)
    elsewhere = await app_by(tmp_path, {**keys, "blob_storage.bucket": "no-such-bucket"})
    async with elsewhere:
        with pytest.raises(BlobStoreError, match="no-such-bucket"):
            await elsewhere.runtime.means.values.store(uuid7(), f'"{LARGE}"')
