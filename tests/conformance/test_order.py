"""Order with ageing: what overtakes a job, and for how long, is what `ready time − head start` says and nothing else.

See docs/explanation/order.md for the formula and its proof.
"""

from __future__ import annotations

from datetime import timedelta
from random import Random
from uuid import UUID

import pytest

from headrace.model.priority import Priority, head_start
from tests.conformance.order_stream import Stream
from tests.conformance.scenario import DAY, SECOND, Scenario

STEP = 5 * SECOND


PAIRS = [
    (Priority.BULK, Priority.INTERACTIVE),
    (Priority.LOW, Priority.HIGH),
    (Priority.STANDARD, Priority.INTERACTIVE),
    (Priority.HIGH, Priority.HIGH),
    (Priority.INTERACTIVE, Priority.BULK),
]


@pytest.mark.parametrize(("low", "high"), PAIRS, ids=lambda value: value.name.lower())
async def test_a_continuous_stream_of_a_higher_class_delays_a_job_by_its_head_start(
    on: Scenario, low: Priority, high: Priority
) -> None:
    """Urgent jobs come as fast as they are worked off, for ever: the job starts as its head start says.

    It is overtaken by exactly those that became ready less than the difference of the head starts after it.
    """
    stream = Stream(on, await on.worker(lease=DAY))
    ahead = max(head_start(high) - head_start(low), timedelta())
    await stream.enqueue(high, 2)
    [patient] = await stream.enqueue(low)
    waited_from = on.clock.now()
    while patient not in stream.started_at:
        await stream.work(2)
        on.clock.advance(STEP)
        await stream.enqueue(high, 2)
        assert on.clock.now() - waited_from <= ahead + 3 * STEP

    others = {job_id for job_id in stream.ready_at if job_id != patient}
    after = {job_id for job_id in others if stream.ready_at[job_id] > waited_from}
    within = {job_id for job_id in after if stream.key(job_id) < stream.key(patient)}
    assert stream.overtook(patient) == within
    assert all(stream.ready_at[job_id] - waited_from <= ahead for job_id in within)
    assert len(within) == pytest.approx(2 * (ahead / STEP), abs=2)


async def test_a_flood_of_a_higher_class_delays_a_job_by_no_more_than_came_in_its_head_start(on: Scenario) -> None:
    """Urgent jobs come three times as fast as they are worked off: those of ten minutes go first, no later one does."""
    stream = Stream(on, await on.worker(lease=DAY))
    [patient] = await stream.enqueue(Priority.BULK)
    begin, ahead = on.clock.now(), head_start(Priority.INTERACTIVE)
    step = 12 * STEP
    while on.clock.now() - begin < 2 * ahead:
        on.clock.advance(step)
        await stream.enqueue(Priority.INTERACTIVE, 3)
        await stream.work(1)
    while patient not in stream.started_at:
        await stream.work(1)

    overtook = stream.overtook(patient)
    assert {job_id for job_id in stream.ready_at if begin < stream.ready_at[job_id] < begin + ahead} <= overtook
    assert all(stream.ready_at[job_id] - begin <= ahead for job_id in overtook)
    assert 27 <= len(overtook) <= 30


@pytest.mark.parametrize("seed", range(3))
async def test_of_what_is_ready_the_least_key_starts(on: Scenario, seed: int) -> None:
    """Any classes, ready now or later, and claims of any size: every claim takes the least keys of what is ready."""
    chance = Random(seed)
    stream = Stream(on, await on.worker(lease=10 * DAY))
    waiting: set[UUID] = set()
    for _ in range(40):
        on.clock.advance(chance.choice((0, 1, 7, 60, 300)) * SECOND)
        for _ in range(chance.randrange(4)):
            if chance.random() < 0.3:
                later = on.clock.now() + chance.randrange(1, 600) * SECOND
                waiting.add(await stream.enqueue_for(chance.randrange(10), later))
            else:
                waiting.update(await stream.enqueue(chance.randrange(10), chance.randrange(1, 3)))
        count, begun = chance.randrange(4), len(stream.started)
        ready = [job_id for job_id in waiting if stream.ready_at[job_id] <= on.clock.now()]
        await stream.work(count)
        expected = sorted(ready, key=stream.key)[:count]
        assert stream.started[begun:] == expected
        waiting.difference_update(expected)
    stream.check_overtaking()
