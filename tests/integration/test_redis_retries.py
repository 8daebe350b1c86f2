"""Retrying the failed items of large batches on Redis: in parts, so that no script holds everybody else up."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest

from headrace.model.batch import BatchOutcome, BatchState, ClosePolicy
from headrace.model.job import JobState
from headrace.stores.redis.batch_store import RETRY_WAIT, SETTLE_PART
from headrace.testing.clock import FakeClock
from tests.backends.redis import open_test_stores
from tests.conformance.scenario import SECOND, Scenario

COUNT = 2 * SETTLE_PART + 50
FAILED = [JobState.FAILED] * COUNT


@pytest.fixture
async def on() -> AsyncIterator[Scenario]:
    """Open stores under a clock that stands still."""
    clock = FakeClock()
    async with open_test_stores(clock) as stores:
        yield Scenario(stores, clock)


async def failed_batch(on: Scenario, session: UUID, **facts: Any) -> UUID:
    """Let a batch close all of whose items failed."""
    batch_id = await on.batch(COUNT, **facts)
    await on.work_off(session, FAILED)
    assert len(await on.stores.batches.close_batches([batch_id])) == 1
    return batch_id


def after_each_part(on: Scenario, monkeypatch: pytest.MonkeyPatch, do: Callable[[], Awaitable[None]]) -> list[int]:
    """Do something behind each script that copies; return the list of how many items each copies."""
    namespace = on.stores.batches._namespace  # type: ignore[attr-defined]
    run, parts = namespace.run, []

    async def spied(verb: str, /, *words: Any) -> Any:
        answer = await run(verb, *words)
        if verb == "retry_failed":
            parts.append(answer[0])
            await do()
        return answer

    monkeypatch.setattr(namespace, "run", spied)
    return parts


async def test_many_items_are_copied_in_parts_and_in_order(on: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each script copies a few; together they are one round, in the order of the items, each item once."""

    async def nothing() -> None: ...

    session = await on.worker()
    batch_id = await failed_batch(on, session)
    parts = after_each_part(on, monkeypatch, nothing)
    assert await on.stores.batches.retry_failed(batch_id) == COUNT
    assert parts == [SETTLE_PART, SETTLE_PART, 50]
    assert (await on.stores.inspect.list_batches())[0].round == 2
    assert [job.ordinal for job in await on.claim(session, COUNT)] == list(range(COUNT))


async def test_a_round_is_not_over_before_it_is_whole(on: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies that end while others are yet to be made neither close the batch nor bring its policy into force."""
    session = await on.worker()
    batch_id = await failed_batch(on, session, policy=ClosePolicy(max_failed=0))
    closed: list[Any] = []

    async def work() -> None:
        copies = await on.claim(session, SETTLE_PART)
        await on.end(session, *copies)
        closed.extend(await on.stores.batches.close_batches([batch_id]))

    after_each_part(on, monkeypatch, work)
    assert await on.stores.batches.retry_failed(batch_id) == COUNT
    assert [batch.outcome for batch in closed] == [BatchOutcome.SUCCEEDED]


async def test_who_dies_between_parts_leaves_a_batch_that_closes(on: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a minute without the next part the round ends with what was copied; the rest can be retried again."""

    class DiedError(Exception):
        pass

    async def die() -> None:
        raise DiedError

    session = await on.worker()
    batch_id = await failed_batch(on, session)
    with monkeypatch.context() as patched:
        after_each_part(on, patched, die)
        with pytest.raises(DiedError):
            await on.stores.batches.retry_failed(batch_id)
    await on.work_off(session, [JobState.SUCCEEDED] * SETTLE_PART)
    assert await on.stores.batches.close_batches([batch_id]) == []
    on.clock.advance(RETRY_WAIT + SECOND)
    [closed] = await on.stores.batches.close_batches([batch_id])
    assert closed.outcome is BatchOutcome.PARTIAL
    assert await on.stores.batches.retry_failed(batch_id) == COUNT - SETTLE_PART


async def test_a_cancel_between_parts_ends_the_copying(on: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is copied is cancelled, the rest stays failed, and the batch closes at once."""
    session = await on.worker()
    batch_id = await failed_batch(on, session)
    parts = after_each_part(on, monkeypatch, lambda: on.stores.batches.cancel_batch(batch_id))
    assert await on.stores.batches.retry_failed(batch_id) == SETTLE_PART
    assert parts == [SETTLE_PART, -1]
    assert await on.stores.batches.settle_cancelled(batch_id, limit=COUNT) == SETTLE_PART
    assert len(await on.stores.batches.close_batches([batch_id])) == 1
    assert (await on.stores.inspect.list_batches())[0].state is BatchState.CLOSED
