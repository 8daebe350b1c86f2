"""Processes that append to feeds and die: another that appends the same leaves every entry once, without a gap."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from headrace.ports.stores import Stores
from tests.backends.redis import empty_site
from tests.backends.redis import stores_on as redis_on
from tests.integration.feed_appender import FEED
from tests.integration.postgres_setup import schema_stores, shared_server

COUNT, DEATHS = 200, 2
ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def opened(kind: str) -> AsyncIterator[tuple[tuple[str, str, str], Stores]]:
    """Open stores, and tell how another process finds them."""
    if kind == "redis":
        async with empty_site() as site, redis_on(site, None) as stores:
            yield (kind, site.url, site.prefix), stores
    else:
        async with schema_stores() as (schema, stores):
            yield (kind, shared_server().dsn, schema), stores


async def append(place: tuple[str, str, str], *, life: float | None) -> int | None:
    """Let a process append; kill it so many seconds after it began, or wait for its end. Return how it ended."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.integration.feed_appender", *place, str(COUNT), cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert await process.stdout.readline() == b"begun\n"
    if life is not None:
        await asyncio.wait([asyncio.ensure_future(process.wait())], timeout=life)
        if process.returncode is None:
            process.kill()
    await process.communicate()
    return process.returncode


@pytest.mark.parametrize("kind", ["postgres", "redis"])
async def test_whoever_goes_on_leaves_every_entry_once(kind: str) -> None:
    """kill -9 while entries are appended, some twice at once; the next process begins with the first entry again."""
    fate = random.Random(7)
    async with opened(kind) as (place, stores):
        for _ in range(DEATHS):
            await append(place, life=fate.uniform(0.005, 0.06))
        ended = await append(place, life=None)

        read = await stores.feeds.read_feed(FEED, after=0, limit=2 * COUNT)
    assert ended == 0
    assert [(entry.seq, entry.data) for entry in read] == [(number + 1, str(number)) for number in range(COUNT)]
