"""SignalStore: the first signal of a key stands, is kept when it comes early, and wakes who waits for it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest

from headrace.model.job import JobState, Park
from headrace.ports.signal_store import SignalStore
from tests.conformance.scenario import ALL, DAY, SECOND, Scenario
from tests.waiting import wait_until

KEPT = timedelta(days=7)


@pytest.fixture
def signals(on: Scenario) -> SignalStore:
    """Return the signal store of the backend."""
    return on.stores.signals


async def test_a_signal_is_kept(signals: SignalStore) -> None:
    """Also when nobody waits for it yet."""
    assert await signals.send_signal("k", '{"ok": [1, null, "é"]}')

    read = await signals.read_signal("k")
    assert read is not None
    assert json.loads(read) == {"ok": [1, None, "é"]}


async def test_a_key_without_a_signal(on: Scenario, signals: SignalStore) -> None:
    """Has none to read, also while someone waits for it."""
    session, job = await on.start()
    await on.end(session, job, state=JobState.PARKED, park=Park("k"))

    assert await signals.read_signal("k") is None
    assert await signals.read_signal("l") is None


async def test_the_first_signal_stands(signals: SignalStore) -> None:
    """A second one of the key says so and changes nothing."""
    assert await signals.send_signal("k", "1")
    assert not await signals.send_signal("k", "2")
    assert await signals.send_signal("l", "3")

    assert [await signals.read_signal(key) for key in "kl"] == ["1", "3"]


async def test_a_signal_of_null_is_one(signals: SignalStore) -> None:
    """What it carries may be nothing."""
    assert await signals.send_signal("k", "null")

    assert await signals.read_signal("k") == "null"
    assert not await signals.send_signal("k", "1")


async def test_of_signals_at_once_one_stands(signals: SignalStore) -> None:
    """And the others are told that they came later."""
    answers = await asyncio.gather(*(signals.send_signal("k", str(number)) for number in range(10)))

    assert answers.count(True) == 1
    assert await signals.read_signal("k") == str(answers.index(True))


async def test_a_second_signal_wakes_nobody(on: Scenario, signals: SignalStore) -> None:
    """There is nobody to wake: who parks on a key that has its signal does not wait."""
    await signals.send_signal("k", "1")
    session, job = await on.start()
    await on.end(session, job, state=JobState.PARKED, park=Park("k"))
    [again] = await on.claim(session)

    assert not await signals.send_signal("k", "2")
    assert await on.end(session, again) == [job.id]


async def test_a_signal_hints_the_queues_of_whom_it_wakes(on: Scenario, signals: SignalStore) -> None:
    """Their workers need not wait for the next poll."""
    session = await on.worker(lease=DAY)
    for queue in ("default", "mail"):
        _, job = await on.start(session, queue=queue)
        await on.end(session, job, state=JobState.PARKED, park=Park("k"))
    heard: list[str] = []
    await on.stores.notifier.subscribe(heard.append)
    await signals.send_signal("k", "1")

    await wait_until(lambda: {"queue:default", "queue:mail"} <= set(heard))


async def test_a_signal_is_removed_after_its_time(on: Scenario, signals: SignalStore) -> None:
    """Counted from when it came; then its key may have another."""
    await signals.send_signal("k", "1")
    on.clock.advance(KEPT - SECOND)
    assert await signals.prune_signals(older_than=KEPT, limit=ALL) == 0
    await signals.send_signal("young", "2")
    on.clock.advance(2 * SECOND)

    assert await signals.prune_signals(older_than=KEPT, limit=ALL) == 1
    assert await signals.read_signal("k") is None
    assert await signals.read_signal("young") == "2"
    assert await signals.send_signal("k", "3")


async def test_pruning_stops_at_its_limit(on: Scenario, signals: SignalStore) -> None:
    """The next calls go on."""
    for number in range(5):
        await signals.send_signal(f"k{number}", "1")
    on.clock.advance(KEPT + SECOND)

    assert [await signals.prune_signals(older_than=KEPT, limit=2) for _ in range(4)] == [2, 2, 1, 0]


async def test_pruning_leaves_those_who_wait(on: Scenario, signals: SignalStore) -> None:
    """A key that a job is parked on is not forgotten, however long it waits."""
    session, job = await on.start(await on.worker(lease=1_000 * DAY))
    await on.end(session, job, state=JobState.PARKED, park=Park("k"))
    on.clock.advance(10 * KEPT)
    await signals.prune_signals(older_than=KEPT, limit=ALL)
    await signals.send_signal("k", "1")

    assert [again.id for again in await on.claim(session)] == [job.id]


async def test_a_term_that_is_over_removes_nothing(on: Scenario, signals: SignalStore) -> None:
    """Only the term that holds does."""
    await signals.send_signal("k", "1")
    on.clock.advance(KEPT + SECOND)
    term = await on.term()

    for false_term in (replace(term, session=uuid4()), replace(term, term=term.term - 1)):
        assert await signals.prune_signals(older_than=KEPT, limit=ALL, term=false_term) == 0
    assert await signals.prune_signals(older_than=KEPT, limit=ALL, term=term) == 1
