"""The order of any jobs at any times is that of the formula; see docs/explanation/order.md."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.model.priority import HEAD_START_SECONDS, Priority, head_start
from headrace.stores.memory import open_memory_stores
from headrace.testing.clock import FakeClock
from tests.conformance.order_stream import Stream
from tests.conformance.scenario import DAY, Scenario

#: Seconds that pass, classes of jobs that are ready then, of jobs that will be in so many seconds, and free slots.
STEPS = st.lists(
    st.tuples(
        st.integers(0, 700),
        st.lists(st.integers(0, 9), max_size=3),
        st.lists(st.tuples(st.integers(0, 9), st.integers(1, 700)), max_size=2),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=30,
)


async def play(steps: list[tuple[int, list[int], list[tuple[int, int]], int]]) -> Stream:
    """Let jobs come and go, check every claim against the formula, and work off the rest."""
    clock = FakeClock()
    on = Scenario(open_memory_stores(clock), clock)
    stream = Stream(on, await on.worker(lease=365 * DAY))
    for seconds, ready, later, slots in [*steps, (1_000, [], [], 10_000)]:
        clock.advance(timedelta(seconds=seconds))
        for priority in ready:
            await stream.enqueue(priority)
        for priority, delay in later:
            await stream.enqueue_for(priority, clock.now() + timedelta(seconds=delay))
        started = set(stream.started)
        could = [job for job in stream.ready_at if job not in started and stream.ready_at[job] <= clock.now()]
        begun = len(stream.started)
        await stream.work(slots)
        assert stream.started[begun:] == sorted(could, key=stream.key)[:slots]
    return stream


@settings(max_examples=60)
@given(steps=STEPS)
def test_a_job_is_overtaken_only_within_the_difference_of_the_head_starts(
    steps: list[tuple[int, list[int], list[tuple[int, int]], int]],
) -> None:
    """Whatever comes when, and however much is claimed at once: the formula and its bound hold, and nothing is left."""
    stream = asyncio.run(play(steps))
    stream.check_overtaking()
    assert set(stream.started) == set(stream.ready_at)


def test_head_starts_fall_with_the_class() -> None:
    """Ten minutes for interactive, none for bulk, and no two classes alike: the page of the order names them."""
    assert all(first > second for first, second in pairwise(HEAD_START_SECONDS))
    assert [HEAD_START_SECONDS[priority] for priority in Priority] == [600, 300, 120, 30, 0]


def test_a_key_in_milliseconds_with_a_factor_for_the_class_is_strict_priority() -> None:
    """(10 − priority)·10¹² + milliseconds never lets waiting make up for a class; the key of head starts does."""
    bulk_since, now = datetime(1996, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)

    def strict(priority: int, ready_at: datetime) -> float:
        return -((10 - priority) * 10**12) + ready_at.timestamp() * 1_000

    assert strict(Priority.LOW, now) < strict(Priority.BULK, bulk_since)
    assert now - head_start(Priority.LOW) > bulk_since - head_start(Priority.BULK)
