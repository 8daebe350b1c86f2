"""Whatever stream of changes comes, and however often who reads it is cut off: the same is remembered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from headrace.apps.memory.tables.values import NewBlob
from headrace.model.event import Message
from tests.backends.kafka import shared_broker
from tests.faults.memory_line import FULL, PATIENCE, MemoryLine, chats, memory_line
from tests.faults.memory_streams import (
    changes_of,
    insert_and_listen,
    noise,
    tell_kafka,
    tell_store,
    worse,
)
from tests.waiting import wait_until

USERS, EACH = 5, 7
Kept = dict[str, list[tuple[Any, ...]]]
#: What is remembered of a stream that nothing disturbed, by its seed.
_UNDISTURBED: dict[int, Kept] = {}
pytestmark = pytest.mark.timeout(300)


def transactions(seed: int) -> list[list[NewBlob]]:
    """Return what users say, some of it together."""
    chance = Random(seed)
    said, found = chats(USERS, EACH, chance), list[list[NewBlob]]()
    while said:
        size = chance.randrange(1, 7)
        found.append(said[:size])
        said = said[size:]
    return found


async def undisturbed(folder: Path, seed: int) -> Kept:
    """Return what is remembered where all goes well: one process, the trigger, each thing once and in order."""
    if seed not in _UNDISTURBED:
        async with memory_line(folder) as line:
            line.start().wait_until_started()
            for blobs in transactions(seed):
                await line.insert(blobs)
            await line.settle()
            await line.flush_rest(USERS)
            _UNDISTURBED[seed] = await line.kept()
    return _UNDISTURBED[seed]


async def in_trouble(line: MemoryLine, seed: int, tell: Callable[..., Awaitable[None]]) -> Kept:
    """Tell of everything in a worse way while the process that works is killed, and return what is remembered."""
    chance, worker, heard = Random(seed + 100), line.start(), 0
    parts = transactions(seed)
    # The first stream is the quick one.
    cuts = {len(parts) // 2} if seed == 1 else {len(parts) // 3, 2 * len(parts) // 3}
    for number, blobs in enumerate(parts):
        if number in cuts:
            # In the middle: some of the changes are read, and others are not yet.
            heard = await wait_until(partial(_heard, line, heard), PATIENCE, message="changes to be read")
            worker.kill()
            worker = line.start()
        await tell(number, blobs, chance)
    await line.settle()
    await line.flush_rest(USERS)
    assert await line.unordered() == []
    return await line.kept()


async def _heard(line: MemoryLine, before: int) -> int:
    """Return how many changes were read, if there are more than before."""
    count = int(await line.connection.fetchval(f"SELECT count(*) FROM {line.store}.event_inbox"))
    return count if count > before else 0


async def by_trigger(line: MemoryLine, seed: int) -> Kept:
    """The trigger tells of each change, and all it told comes again and again."""
    known: list[Message] = []

    async def tell(number: int, blobs: Sequence[NewBlob], chance: Random) -> None:
        told = await insert_and_listen(line, blobs)
        assert len(told) == len(blobs)
        await tell_store(line, worse([], known, noise(line, chance), chance))
        known.extend(told)

    return await in_trouble(line, seed, tell)


async def by_connector(line: MemoryLine, seed: int, send: Callable[[Sequence[Message]], Awaitable[None]]) -> Kept:
    """A connector tells of each change, in any of its forms, in another order and more than once."""
    known: list[Message] = []

    async def tell(number: int, blobs: Sequence[NewBlob], chance: Random) -> None:
        await line.insert(blobs)
        told = await changes_of(line, blobs, number + 1, chance)
        assert len(told) == len(blobs)
        await send(worse(told, known, noise(line, chance), chance))
        known.extend(told)

    return await in_trouble(line, seed, tell)


@asynccontextmanager
async def troubled(folder: Path, **given: Any) -> AsyncIterator[MemoryLine]:
    """Make a line whose members are missed soon."""
    environ = {"HEADRACE_EVENTS_MEMBER_LEASE": "2s", **given.pop("environ", {})}
    async with memory_line(folder, environ=environ, **given) as line:
        yield line


def assert_same(found: Kept, wanted: Kept) -> None:
    """Compare all that is remembered, and see that there is something: several full flushes of each user."""
    for name, rows in wanted.items():
        assert found[name] == rows, name
    assert {state for *_, state in wanted["flushes"]} == {"done"}
    assert {status for *_, status in wanted["rows"]} == {"done"}
    assert len(wanted["rows"]) == USERS * EACH
    assert len(wanted["flushes"]) >= 2 * USERS and len(wanted["events"]) == len(wanted["flushes"])
    assert sum(tokens > FULL for _, _, _, _, tokens, _ in wanted["flushes"]) >= USERS


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
async def test_what_the_trigger_tells_may_come_again_and_its_reader_may_die(tmp_path: Path, seed: int) -> None:
    """Replays, noise and kills leave no trace."""
    wanted = await undisturbed(tmp_path, seed)
    async with troubled(tmp_path) as line:
        assert_same(await by_trigger(line, seed), wanted)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_what_a_connector_tells_may_come_in_any_order_and_again(tmp_path: Path, seed: int) -> None:
    """By the bus of the store, in Debezium's forms: the same is remembered as by the trigger."""
    wanted = await undisturbed(tmp_path, seed)
    async with troubled(tmp_path, source="debezium") as line:
        assert_same(await by_connector(line, seed, partial(tell_store, line)), wanted)


@pytest.mark.slow
async def test_a_broker_may_tell_it_too(tmp_path: Path) -> None:
    """The same by a real broker, whose offsets are committed after the effect."""
    wanted = await undisturbed(tmp_path, 1)
    servers = shared_broker().servers
    environ = {
        "HEADRACE_EVENTS_BUS": "kafka", "HEADRACE_EVENTS_KAFKA_SERVERS": servers,
        "HEADRACE_EVENTS_KAFKA_SESSION_TIMEOUT": "6s",
    }  # fmt: skip
    async with troubled(tmp_path, source="debezium", environ=environ) as line:

        async def send(messages: Sequence[Message]) -> None:
            await asyncio.to_thread(tell_kafka, servers, messages)

        assert_same(await by_connector(line, 1, send), wanted)
