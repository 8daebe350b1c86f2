"""Calls with many megabytes of arguments on Redis: sent in parts, or refused before anything is sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from headrace import App
from headrace.model.batch import BatchState, NewBatch
from headrace.model.errors import InvalidInputError
from headrace.settings import load_settings
from headrace.stores.redis import RedisSite, create_namespace
from headrace.stores.redis.intake import MAX_CALL_BYTES
from tests.backends.redis import new_prefix
from tests.backends.valkey import ValkeyServer
from tests.conformance.scenario import SPEC
from tests.waiting import wait_until

#: Four of these are a megabyte. Quotes are escaped on the way.
LARGE = '"' * 127 * 1024
TOO_MANY = MAX_CALL_BYTES // (2 * len(LARGE)) + 3


@pytest.fixture
async def app() -> AsyncIterator[App]:
    """Return an app on a server of its own, which keeps no file: it is all about what crosses the wire."""
    server = ValkeyServer(appendonly="no")
    environ = {
        "HEADRACE_URL": server.url,
        "HEADRACE_QUEUE_STREAM_PREFIX": new_prefix(),
        "HEADRACE_QUEUE_UNSAFE_NO_PERSISTENCE": "true",
    }
    settings = load_settings(environ=environ, file=Path("missing.toml"))
    await create_namespace(RedisSite(server.url, prefix=settings.queue.stream_prefix, unsafe=True))
    made = App(settings=settings)

    @made.task
    async def read(text: str) -> int:
        return len(text)

    async with made:
        yield made
    server.remove()


async def test_a_list_that_is_too_large_is_refused_before_it_is_sent(app: App) -> None:
    """The error names rule, size and fix; nothing is stored, and others on the connection notice nothing."""
    read = app.find_task("read")
    for refused in (app.submit(read, [LARGE] * TOO_MANY, key="k"), read.enqueue_many([LARGE] * TOO_MANY)):
        with pytest.raises(InvalidInputError, match=r"no more than 64 MiB .* app.submit does with a generator.*MiB'"):
            await refused
    assert await app.find_batch(read, "k") is None
    assert await app.runtime.stores.inspect.list_jobs() == []
    await read.enqueue("small")


async def test_a_stream_may_be_as_large_as_it_likes(app: App) -> None:
    """A generator of more than one call may have becomes one batch, whole only when it is sealed."""
    batch = await app.submit(app.find_task("read"), (LARGE for _ in range(TOO_MANY)))
    assert ((await batch.view()).state, (await batch.progress()).total) == (BatchState.SEALED, TOO_MANY)


async def test_callers_at_once_are_not_refused_for_one_another(app: App) -> None:
    """Single enqueues that would go in one call are stored, each with its own, however large they are together."""
    read = app.find_task("read")
    handles = await asyncio.gather(*(read.enqueue(LARGE) for _ in range(TOO_MANY)))
    assert len({handle.id for handle in handles}) == TOO_MANY
    await wait_until(lambda: stored(app, TOO_MANY))


async def stored(app: App, count: int) -> bool:
    """Whether so many jobs are ready."""
    return sum(queue.ready for queue in await app.runtime.stores.inspect.queue_stats()) == count


async def test_what_is_allowed_arrives(app: App) -> None:
    """One call of the largest size is taken, escaped and all."""
    item = '"' * (64 * 1024)
    batches = app.runtime.stores.batches
    batch_id = await batches.create_batch(NewBatch(SPEC), [item] * (MAX_CALL_BYTES // len(item)))
    assert (await app.runtime.stores.inspect.batch_progress(batch_id)).waiting == 1_024
